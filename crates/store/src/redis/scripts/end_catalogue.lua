-- Notes that a log was read to its end, unless its beginning was lost meanwhile.
-- KEYS: 1 catalogues of the partition
-- ARGV: 1 log
-- Reply: 1, or 0 if nobody has begun on this server
local state = redis.call('HGET', KEYS[1], ARGV[1])
local run = server()
if not state or string.match(state, ':(%w*)$') ~= run then return 0 end
allow_oom(KEYS[1])
redis.call('HSET', KEYS[1], ARGV[1], 'read:' .. run)
return 1
