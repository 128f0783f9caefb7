-- Creates or changes an item, unless the change is older than what is stored.
-- ARGV: 1 id · 2 name · 3 stock · 4 enabled 0|1 · 5 version or '' · 6 base for a new line
--       7 how many of the following come from the caller's policy (0: keep the stored one)
--       8.. policy field, value, … (the defaults where the caller gave none)
-- Reply: {'created'|'updated', HGETALL item} or {'stale'}
local id, name, stock, enabled, version, base = unpack(ARGV)
local given = tonumber(ARGV[7])
local stored = item_fields('version', 'removed', 'tail', 'revision')

if stored.version and version ~= '' and not is_newer(version, stored.version) then
  return {'stale'}
end

local creates = not stored.version or stored.removed == '1'
local fields = {'id', id, 'name', name, 'stock', stock, 'enabled', enabled, 'removed', '0'}
local function set(field, value)
  fields[#fields + 1] = field
  fields[#fields + 1] = value
end

if version ~= '' then set('version', version) elseif not stored.version then set('version', '0') end
if creates then
  base = txt(math.max(tonumber(base), tonumber(stored.tail or '0')))
  set('base', base)
  set('tail', base)
  set('validFrom', txt(tonumber(base) + 1))
  set('dropped', '0')
  set('paused', '0')
end
if creates or given > 0 then
  for i = 8, #ARGV do fields[#fields + 1] = ARGV[i] end
end

redis.call('HSET', ITEM, unpack(fields))
for _, counter in ipairs({'through', 'joined', 'admitted', 'ended'}) do
  redis.call('HSETNX', ITEM, counter, '0')
end
redis.call('SADD', ITEMS, id)
return {creates and 'created' or 'updated', touched()}
