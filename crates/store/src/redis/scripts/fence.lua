-- Let an epoch lead one partition, unless a later one leads it.
-- KEYS: FENCE
-- ARGV: epoch (int)
-- Reply: the epoch that leads now
-- Atomic: the fence never decreases.
local current = tonumber(redis.call('GET', FENCE) or '0')
if epoch <= current then return current end
allow_oom(FENCE)
redis.call('SET', FENCE, format_number(epoch))
return epoch
