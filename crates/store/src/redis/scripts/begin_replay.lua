-- Record that a log is being read from its start, unless this server has a record of that log.
-- KEYS: REPLAYS (replay states of the partition)
-- ARGV: log
-- Reply: 'OK'
-- Atomic: a complete replay is not set back to one in progress.
local state = redis.call('HGET', REPLAYS, log)
local run = run_id()
if not state or string.match(state, ':(%w*)$') ~= run then
  allow_oom(REPLAYS)
  redis.call('HSET', REPLAYS, log, 'reading:' .. run)
end
return 'OK'
