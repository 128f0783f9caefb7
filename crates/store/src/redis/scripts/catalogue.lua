-- How far a log was read. What another server has noted does not count: this one was a replica or
-- was restarted, and may have lost the newest items that were read then.
-- KEYS: 1 catalogues of the partition
-- ARGV: 1 log
-- Reply: 'reading' or 'read', nil if nothing is noted
local state = redis.call('HGET', KEYS[1], ARGV[1])
if not state then return nil end
local how_far, run = string.match(state, '^(%a+):(%w*)$')
return run == server() and how_far or nil
