-- Return an epoch above the stored one and above `floor`, and store it.
-- KEYS: EPOCH
-- ARGV: floor (int)
-- Reply: the new epoch
-- Atomic: no epoch is returned twice.
local epoch = math.max(tonumber(redis.call('GET', EPOCH) or '0'), floor) + 1
allow_oom(EPOCH)
redis.call('SET', EPOCH, format_number(epoch))
return epoch
