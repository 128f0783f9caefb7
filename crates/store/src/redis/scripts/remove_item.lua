-- Remove an item and end the lines of its lanes; entries stay until they end.
-- KEYS: line, then all lanes
-- ARGV: id · now (int, ms) · version (or '') · base (of a line that never existed) · offset · read_at (of the event in its
--       log, or '' and '' for an operator's request)
-- Reply: 'removed', 'notfound' or 'stale'
-- Atomic: version check and removal.
local stored = item_fields('version', 'removed', 'readOffset', 'readAt', 'controlVersion')

-- Return whether an event at or after this one in the log was applied.
local function is_repeat()
  return offset ~= '' and stored.readOffset
    and tonumber(offset) <= tonumber(stored.readOffset) and tonumber(read_at) <= tonumber(stored.readAt)
end

local function record_position()
  if offset ~= '' then redis.call('HSET', ITEM, 'readOffset', offset, 'readAt', read_at) end
end

allow_oom(ITEM)
if not stored.version then
  -- Store the removal although there is no item, because an older event that creates it may arrive later.
  if version ~= '' then
    redis.call('HSET', ITEM, 'id', id, 'version', version, 'removed', '1', 'revision', '0', 'tail', base,
      'dropped', '0', 'through', '0', 'joined', '0', 'admitted', '0', 'ended', '0')
    record_position()
  end
  return 'notfound'
end
if version ~= '' then
  if not is_newer(version, stored.version) then return 'stale' end
  redis.call('HSET', ITEM, 'version', version)
elseif is_repeat() then
  return 'stale'
end
record_position()
if stored.removed == '1' then return 'notfound' end

redis.call('HSET', ITEM, 'removed', '1')
redis.call('SREM', ITEMS, id)
restart_lines()
-- A product service creates the item again with the default policy, so only other settings must survive.
if offset == '' or stored.controlVersion then bump_control(ITEM, id, now) end
return 'removed'
