-- Replace an item's policy if the item has the expected revision.
-- KEYS: line
-- ARGV: revision · now (ms) · fields.. (field, value, …)
-- Reply: {'changed', HGETALL item}, {'conflict'} or {'notfound'}
-- Atomic: no concurrent change of the item is overwritten.
if not item_exists() then return {'notfound'} end
if redis.call('HGET', ITEM, 'revision') ~= revision then return {'conflict'} end
allow_oom(ITEM)
redis.call('HSET', ITEM, unpack(ARGV, FIELDS))
return {'changed', bump_revision(now)}
