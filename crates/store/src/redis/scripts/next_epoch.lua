-- Counts epochs: returns one above the stored count and above the floor.
-- KEYS: 1 count of epochs
-- ARGV: 1 floor
-- Reply: the new epoch
local epoch = math.max(tonumber(redis.call('GET', KEYS[1]) or '0'), tonumber(ARGV[1])) + 1
allow_oom(KEYS[1])
redis.call('SET', KEYS[1], txt(epoch))
return epoch
