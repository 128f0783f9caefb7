-- Restore an entry that the store lost; the caller has verified a pass as proof. The event is written again.
-- KEYS: line, then all lanes if the item has any
-- ARGV: now (int, ms) · recovery_hold (int, ms) · user · number (int) · admitted_at (int, ms) ·
--       expires_at (int, ms) · generation (known to the process) · new_id (for a partition that has none)
-- Reply: 1, or 0 if nothing was lost: then resolve returns the state of the ticket; {'lanes', count} with nothing
--        changed, if KEYS do not name all lanes
-- Atomic: the ticket leaves the line and becomes an entry together with its event.
local lacking = lacks_lanes(unpack(redis.call('HMGET', ITEM, 'lanes', 'laneCount')))
if lacking then return {'lanes', lacking} end
local has_line = begin_lane(now, true)
local item = load_recovery_state(check_generation(GENERATION, generation, new_id, now))
if not has_line or item.removed ~= '0' or number < item.validFrom or redis.call('HEXISTS', ENTERED, user) == 1 then
  return 0
end
allow_oom(ITEM)
if number > item.tail then
  if not has_evidence(item, now) then return 0 end
  advance_past_lost(item, number, now, recovery_hold)
end

if not remove_from_line(user, number) then
  if is_live_elsewhere(user) or not is_reclaimable(item, user, number, now) then return 0 end
  use_lost_range(item, now)
  redis.call('HINCRBY', LINE, 'joined', 1)
  redis.call('SADD', ACTIVE, item.id)
end
admit(user, format_number(number), expires_at)
commit(admitted_at, item.id)
return 1
