-- Open a line whose opening is due. A draw needs a fixed cohort and its result.
-- KEYS: line
-- ARGV: epoch · now (int, ms) · root · beacon · seed (hex; '' without a result, beacon '' if there is none)
-- Reply: 1 if this call opened the line, 0 otherwise
-- Atomic: state, seed and event are written together and once; a stale epoch changes nothing.
if is_stale(epoch) then return STALE end
local item = item_fields('id', 'removed', 'opening', 'opensAt', 'lobbyAt', 'closesAt', 'openedAt', 'reveal',
  'cohortFirst', 'cohortSize')
if item.removed ~= '0' or not is_opening_due(item, now) then return 0 end
local draw = ''
if item.reveal ~= '' then
  if item.cohortSize == '' or seed == '' then return 0 end
  draw = table.concat({item.reveal, item.cohortFirst, item.cohortSize, root, seed, beacon}, ' ')
end
allow_oom(ITEM)
redis.call('HSET', ITEM, 'openedAt', format_number(now))
if draw ~= '' then redis.call('HSET', ITEM, 'drawRoot', root, 'drawSeed', seed, 'drawBeacon', beacon) end
bump_revision(format_number(now))
bump_control(ITEM, item.id, now)
write_line_event(now, item.id, epoch, 'opened', draw)
return 1
