-- Fix the cohort of a line whose draw is due: all numbers from the lowest waiting one to the tail.
-- KEYS: line
-- ARGV: epoch · now (int, ms)
-- Reply: {first, size}, also if the cohort was fixed before, or {} if no draw is due
-- Atomic: each join is in the cohort or behind it; a stale epoch changes nothing.
if is_stale(epoch) then return STALE end
local item = item_fields('removed', 'opening', 'opensAt', 'lobbyAt', 'closesAt', 'openedAt', 'reveal',
  'cohortFirst', 'cohortSize', 'tail')
if item.removed ~= '0' or not is_opening_due(item, now) or item.reveal == '' then return {} end
if item.cohortSize ~= '' then return {tonumber(item.cohortFirst), tonumber(item.cohortSize)} end
local tail = tonumber(item.tail)
local first = math.max(first_waiting() or tail + 1, tail + 1 - MAX_COHORT)
local size = tail + 1 - first
allow_oom(ITEM)
-- After a data loss, a part of the cohort is below the base. Ranks mix both parts, so all of it must be below.
local state = load_recovery_state()
if size > 0 and first <= state.base and state.base < tail then
  move_base(state, tail)
  redis.call('HSET', LINE, 'base', item.tail, 'clockBase', item.tail, 'lostTo', format_number(state.lostTo))
end
redis.call('HSET', LINE, 'cohortFirst', format_number(first), 'cohortSize', format_number(size))
-- A concurrent change of the opening must not overlook that the draw has begun.
bump_revision(format_number(now))
return {first, size}
