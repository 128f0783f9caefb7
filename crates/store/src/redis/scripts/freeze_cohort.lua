-- Fix the cohort of a line whose draw is due: all numbers from the lowest waiting one to the tail. After a data
-- loss, the cohort waits for the end of the recovery hold, so that users have reclaimed their numbers.
-- KEYS: line
-- ARGV: epoch · now (int, ms)
-- Reply: {first, size}, also if the cohort was fixed before, or {} if no draw is due or the line recovers
-- Atomic: each join is in the cohort or behind it; a stale epoch changes nothing.
if is_stale(epoch) then return STALE end
local item = item_fields('id', 'removed', 'opening', 'opensAt', 'lobbyAt', 'closesAt', 'openedAt', 'reveal',
  'cohortFirst', 'cohortSize', 'tail', 'validFrom', 'lobbyFirst', 'recoveringUntil', 'behindUntil')
if item.removed ~= '0' or not is_opening_due(item, now) or item.reveal == '' then return {} end
if math.max(tonumber(item.recoveringUntil or '0'), tonumber(item.behindUntil or '0')) > now then return {} end
if item.cohortSize ~= '' then return {tonumber(item.cohortFirst), tonumber(item.cohortSize)} end
local tail = tonumber(item.tail)
-- After all data was lost, lower numbers than the lowest waiting one may still be reclaimed.
local lobby_first = tonumber(item.lobbyFirst or '') or math.huge
if lobby_first < tonumber(item.validFrom) then lobby_first = math.huge end
local first = math.max(math.min(first_waiting() or tail + 1, lobby_first), tail + 1 - MAX_COHORT)
local size = tail + 1 - first
allow_oom(ITEM)
-- After a data loss, a part of the cohort is below the base. Ranks mix both parts, so all of it must be below.
local state = load_recovery_state()
if size > 0 and first <= state.base and state.base < tail then
  move_base(state, tail)
  redis.call('HSET', LINE, 'base', item.tail, 'clockBase', item.tail, 'lostTo', format_number(state.lostTo))
end
redis.call('HSET', LINE, 'cohortFirst', format_number(first), 'cohortSize', format_number(size))
bump_control(ITEM, item.id, now)
return {first, size}
