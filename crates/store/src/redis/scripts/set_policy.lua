-- Replace an item's policy if the item has the expected revision. Another opening needs an empty line.
-- KEYS: line
-- ARGV: revision · now (ms) · replaces_opening ('1' or '') · fields.. (field, value, …)
-- Reply: {'changed', HGETALL item}, {'conflict'}, {'notempty'} or {'notfound'}
-- Atomic: no concurrent change of the item is overwritten.
if not item_exists() then return {'notfound'} end
if redis.call('HGET', ITEM, 'revision') ~= revision then return {'conflict'} end
if replaces_opening == '1'
  and redis.call('ZCARD', WAITING) + redis.call('ZCARD', RETURNING) + redis.call('HLEN', MISSED) > 0 then
  return {'notempty'}
end
allow_oom(ITEM)
redis.call('HSET', ITEM, unpack(ARGV, FIELDS))
local item = item_fields('id', 'opening', 'closesAt', 'openedAt', 'closedAt')
-- A line that has closed opens again with another closing time.
if item.closedAt ~= item.closesAt and (item.closedAt or '') ~= '' then
  redis.call('HSET', ITEM, 'closedAt', '')
  item.closedAt = ''
end
if has_opening_ahead(item) then redis.call('SADD', ACTIVE, item.id) end
return {'changed', bump_revision(now)}
