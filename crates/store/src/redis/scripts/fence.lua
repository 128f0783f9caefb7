-- Lets an epoch lead one partition, unless a later one leads already. Puts the count of epochs
-- beyond one that was given, too.
-- KEYS: 1 fence, or the count
-- ARGV: 1 epoch
-- Reply: the epoch that leads now
local held = tonumber(redis.call('GET', KEYS[1]) or '0')
if tonumber(ARGV[1]) <= held then return held end
redis.call('SET', KEYS[1], ARGV[1])
return tonumber(ARGV[1])
