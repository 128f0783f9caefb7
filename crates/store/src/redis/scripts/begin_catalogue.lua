-- Notes that a log is read from its beginning, where this server knows of no such note.
-- KEYS: 1 catalogues of the partition
-- ARGV: 1 log
-- Reply: 'OK'
local state = redis.call('HGET', KEYS[1], ARGV[1])
local run = server()
if not state or string.match(state, ':(%w*)$') ~= run then
  allow_oom(KEYS[1])
  redis.call('HSET', KEYS[1], ARGV[1], 'reading:' .. run)
end
return 'OK'
