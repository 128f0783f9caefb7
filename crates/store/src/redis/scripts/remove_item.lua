-- Takes an item out and ends its line; people inside stay until their end.
-- ARGV: 1 id · 2 version or '' · 3 base for a line that never was
--       4, 5 offset and time it was read at, or '' and '' by an operator's hand
-- Reply: 'removed', 'notfound' or 'stale'
local id, version, base, offset, at = unpack(ARGV)
local stored = item_fields('version', 'removed', 'readOffset', 'readAt')

local function is_repeat()
  return offset ~= '' and stored.readOffset
    and tonumber(offset) <= tonumber(stored.readOffset) and tonumber(at) <= tonumber(stored.readAt)
end

local function note_read()
  if offset ~= '' then redis.call('HSET', ITEM, 'readOffset', offset, 'readAt', at) end
end

allow_oom(ITEM)
if not stored.version then
  -- Remembered even though there is nothing to remove: an older event that creates the item may
  -- still be on its way.
  if version ~= '' then
    redis.call('HSET', ITEM, 'id', id, 'version', version, 'removed', '1', 'revision', '0', 'tail', base,
      'dropped', '0', 'through', '0', 'joined', '0', 'admitted', '0', 'ended', '0')
    note_read()
  end
  return 'notfound'
end
if version ~= '' then
  if not is_newer(version, stored.version) then return 'stale' end
  redis.call('HSET', ITEM, 'version', version)
elseif is_repeat() then
  return 'stale'
end
note_read()
if stored.removed == '1' then return 'notfound' end

redis.call('HSET', ITEM, 'removed', '1')
redis.call('SREM', ITEMS, id)
restart()
return 'removed'
