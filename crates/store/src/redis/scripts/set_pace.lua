-- Store the state of an adaptive pace.
-- KEYS: line
-- ARGV: epoch · state (text) · quota (admissions of a tick, for scripts)
-- Reply: 1 if the item exists, 0 otherwise
-- Atomic: state and quota are written together; a stale epoch changes nothing.
if is_stale(epoch) then return STALE end
if not item_exists() then return 0 end
allow_oom(ITEM)
redis.call('HSET', ITEM, 'paceState', state, 'paceQuota', quota)
return 1
