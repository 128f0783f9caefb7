-- Replaces an item's policy if nobody changed the item meanwhile.
-- ARGV: 1 expected revision · 2 now · 3.. policy field, value, …
-- Reply: {'changed', HGETALL item}, {'conflict'} or {'notfound'}
if not is_there() then return {'notfound'} end
if redis.call('HGET', ITEM, 'revision') ~= ARGV[1] then return {'conflict'} end
allow_oom(ITEM)
redis.call('HSET', ITEM, unpack(ARGV, 3))
return {'changed', touched(ARGV[2])}
