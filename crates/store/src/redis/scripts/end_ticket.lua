-- End a live ticket: its user leaves, or its order ended. A lost ticket ends, too, so that it cannot be
-- reclaimed later. A ticket whose time has passed ends as expired or abandoned, also before the leader's next
-- round, because polls have already returned that.
-- KEYS: line
-- ARGV: now (int, ms) · user · number (int) · reason · which ('entered': entries only, or 'any') ·
--       recovery_hold (int, ms) · generation (known to the process) · new_id (for a partition that has
--       none) · leave_cost (int, ms, 0 for none) · leave_window (int, ms)
-- Reply: 'd' ended by this call · 'o' ended before, or never entered · 'f' the item is unknown
-- Atomic: the ticket is removed and its event written together.
local has_line = begin_lane(now, true)
local item = load_recovery_state(check_generation(GENERATION, generation, new_id, now))
if not item.id or not has_line then return 'f' end
allow_oom(ITEM)

-- Keep the slot of an entry that its user gave back until the pass expires, because an offline guard accepts
-- the pass until then.
local function reserve_slot(expires_at)
  redis.call('ZADD', RESERVED_SLOTS, format_number(expires_at), format_number(number))
  if redis.call('PTTL', RESERVED_SLOTS) < expires_at - now then
    redis.call('PEXPIRE', RESERVED_SLOTS, format_number(expires_at - now))
  end
end

local reply, was_admitted = 'd', false

-- Remove the ticket from the line or the entry set. Return whether it was live.
local function remove_live_ticket()
  local entered, admitted_at, expires_at = parse_entry(redis.call('HGET', ENTERED, user))
  if entered == number then
    was_admitted = true
    if expires_at <= now then
      reply, reason = 'o', 'E'
    else
      redis.call('HINCRBY', LINE, 'spent', format_number(math.max(now - admitted_at, 0)))
      if which == 'any' and redis.call('HGET', ITEM, 'guard') ~= 'online' then reserve_slot(expires_at) end
    end
    redis.call('HDEL', ENTERED, user)
    return true
  end
  if item.removed == '0' and number > item.tail and has_evidence(item, now) then
    advance_past_lost(item, number, now, recovery_hold)
  end
  if item.removed == '0' and is_reclaimable(item, user, number, now) then
    use_lost_range(item, now)
    redis.call('HINCRBY', LINE, 'joined', 1)
    return true
  end
  if which == 'entered' then
    -- The order ended after the user had given the entry back: its slot is free now.
    redis.call('ZREM', RESERVED_SLOTS, format_number(number))
    return false
  end
  local removed, deadline = remove_from_line(user, number)
  if deadline and has_missed_turn_ended(deadline, now) then reply, reason = 'o', 'A' end
  return removed
end

if not remove_live_ticket() then return 'o' end
if reply == 'd' then count_leave(user, leave_cost, leave_window, now) end
end_ticket(user, number, reason, now, was_admitted)
commit(now, item.id)
return reply
