-- Fix the Merkle root of a fixed cohort that waits for the round of its beacon.
-- KEYS: line
-- ARGV: epoch · now (int, ms) · root (hex)
-- Reply: the root, also if it was fixed before, or '' if there is no such cohort
-- Atomic: the root is written once; a stale epoch changes nothing.
if is_stale(epoch) then return STALE end
local item = item_fields('id', 'removed', 'opening', 'opensAt', 'lobbyAt', 'closesAt', 'openedAt', 'reveal',
  'cohortSize', 'drawRoot', 'beaconRound')
if item.removed ~= '0' or not is_opening_due(item, now) or item.reveal == '' then return '' end
if item.cohortSize == '' or (item.beaconRound or '') == '' then return '' end
if item.drawRoot ~= '' then return item.drawRoot end
allow_oom(ITEM)
redis.call('HSET', ITEM, 'drawRoot', root)
bump_revision(format_number(now))
bump_control(ITEM, item.id, now)
return root
