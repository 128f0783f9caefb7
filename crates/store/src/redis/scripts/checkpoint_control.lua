-- Record the settings of an item as changed if they were never recorded, or if the counter of its lobby moved
-- since. The counter of a lobby continues near its last recorded number after a loss. A line that recovers keeps
-- its record, because newer ones may still be read.
-- KEYS: line
-- ARGV: epoch · now (int, ms) · interval (int, ms)
-- Reply: 1 if this call recorded a change, 0 otherwise
-- Atomic: a stale epoch changes nothing.
if is_stale(epoch) then return STALE end
local item = item_fields('id', 'removed', 'opening', 'lobbyAt', 'closesAt', 'openedAt', 'tail', 'recoveringUntil',
  'behindUntil', 'controlVersion', 'controlTail')
if item.removed ~= '0' then return 0 end
if math.max(tonumber(item.recoveringUntil or '0'), tonumber(item.behindUntil or '0')) > now then return 0 end
local has_moved = phase(item, now) == 'lobby' and item.tail ~= item.controlTail
if item.controlVersion and not (has_moved and tonumber(item.controlVersion) + interval <= now) then return 0 end
allow_oom(ITEM)
bump_control(ITEM, item.id, now)
return 1
