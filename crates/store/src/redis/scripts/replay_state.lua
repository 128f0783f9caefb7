-- Return how far a log was read. The record of another server does not count: this server was a replica or
-- was restarted, and may have lost the newest items that were read then.
-- KEYS: REPLAYS (replay states of the partition)
-- ARGV: log
-- Reply: 'reading' or 'read', nil if there is no record
-- Atomic: changes nothing.
local state = redis.call('HGET', REPLAYS, log)
if not state then return nil end
local progress, run = string.match(state, '^(%a+):(%w*)$')
return run == run_id() and progress or nil
