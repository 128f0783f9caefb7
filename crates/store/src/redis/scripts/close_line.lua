-- Record that a line closed, once per closing time.
-- KEYS: line
-- ARGV: epoch · now (int, ms)
-- Reply: 1 if this call recorded it, 0 otherwise
-- Atomic: record and event are written together; a stale epoch changes nothing.
if is_stale(epoch) then return STALE end
local item = item_fields('id', 'removed', 'opening', 'opensAt', 'lobbyAt', 'closesAt', 'openedAt', 'closedAt')
if item.removed ~= '0' or phase(item, now) ~= 'closed' or item.closedAt ~= '' then return 0 end
allow_oom(ITEM)
redis.call('HSET', ITEM, 'closedAt', item.closesAt)
bump_control(ITEM, item.id, now)
write_line_event(now, item.id, epoch, 'closed', '')
return 1
