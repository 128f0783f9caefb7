-- Record that a log was read to its end, unless the record of its start was lost.
-- KEYS: REPLAYS (replay states of the partition)
-- ARGV: log
-- Reply: 1, or 0 if this server has no record of the log
-- Atomic: a replay that this server has lost does not become complete.
local state = redis.call('HGET', REPLAYS, log)
local run = run_id()
if not state or string.match(state, ':(%w*)$') ~= run then return 0 end
allow_oom(REPLAYS)
redis.call('HSET', REPLAYS, log, 'read:' .. run)
return 1
