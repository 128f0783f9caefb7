-- Pause or resume admission.
-- KEYS: line
-- ARGV: paused (0 or 1) · now (ms)
-- Reply: HGETALL item, or {} if there is none
-- Atomic: the leader admits no ticket after a pause has been acknowledged.
if not item_exists() then return {} end
allow_oom(ITEM)
redis.call('HSET', ITEM, 'paused', paused)
bump_control(ITEM, redis.call('HGET', ITEM, 'id'), tonumber(now))
-- A resumed line stays marked as stopped until the leader's next round; see admit.lua.
if paused == '1' then redis.call('HSET', ITEM, 'stopped', '1') end
return bump_revision(now)
