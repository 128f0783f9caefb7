-- Store the epoch that leads one partition, unless the stored one is equal or later.
-- KEYS: FENCE
-- ARGV: epoch (int)
-- Reply: the epoch that leads now
-- Atomic: the fence never decreases.
local current = tonumber(redis.call('GET', FENCE) or '0')
if epoch <= current then return current end
allow_oom(FENCE)
redis.call('SET', FENCE, format_number(epoch))
return epoch
