-- Lets an epoch lead one partition, unless a later one leads already.
-- KEYS: 1 fence
-- ARGV: 1 epoch
-- Reply: the epoch that leads now
local held = tonumber(redis.call('GET', KEYS[1]) or '0')
if tonumber(ARGV[1]) <= held then return held end
allow_oom(KEYS[1])
redis.call('SET', KEYS[1], ARGV[1])
return tonumber(ARGV[1])
