-- Store the signature of a round for the draw that names it, unless the line has opened or closed.
-- KEYS: line
-- ARGV: now (int, ms) · round · signature (hex)
-- Reply: 'stored', 'known' (it was stored before), or 'notawaited' if no draw of the item waits for this round
-- Atomic: the signature is written once.
local item = item_fields('id', 'removed', 'opening', 'lobbyAt', 'closesAt', 'openedAt', 'reveal', 'beaconRound',
  'beaconSignature')
if item.removed ~= '0' or (item.reveal or '') == '' or item.beaconRound ~= round then return 'notawaited' end
if item.beaconSignature == signature then return 'known' end
local current = phase(item, now)
local is_ahead = current == 'scheduled' or current == 'lobby'
if not is_ahead or (item.beaconSignature or '') ~= '' then return 'notawaited' end
allow_oom(ITEM)
redis.call('HSET', ITEM, 'beaconSignature', signature)
bump_control(ITEM, item.id, now)
return 'stored'
