-- Recovery from data loss: which numbers may have been lost, and where the counter continues.
-- See docs/RECOVERY.md.

-- Return the fields of the item that describe its losses, as numbers. `loss_until` is the result of
-- check_generation() if the script has called it.
local function load_recovery_state(loss_until)
  local numbers = {'validFrom', 'tail', 'base', 'lostFrom', 'lostTo', 'clockBase', 'takeBackUntil', 'lostRangeUsedAt'}
  local item = item_fields('id', 'removed', 'recoveringUntil', 'opening', 'lobbyAt', 'closesAt', 'openedAt', 'lanes')
  local _, lanes = string.gsub(item.lanes or '', ':', ':')
  item.has_lane = LANE <= lanes
  add_line_fields(item, {'run', unpack(numbers)})
  for _, name in ipairs(numbers) do
    item[name] = tonumber(item[name] or '0')
  end
  item.recoveringUntil = tonumber(item.recoveringUntil or '0')
  -- lostTo is valid only with the base that follow_clock() wrote beside it. With any other base, the
  -- numbers up to the base may be lost.
  if item.clockBase ~= item.base then item.lostTo = item.base end
  item.lossUntil = loss_until or check_generation(GENERATION, '')
  return item
end

-- Return whether a number may have been issued before the store lost data.
local function is_in_lost_range(item, number) return item.lostFrom <= number and number <= item.lostTo end

-- Return whether lost numbers may be reclaimed now. A loss of the partition may be declared at any time, but
-- it does not reopen a range whose first ends may be deleted. A lane that the policy does not have serves none.
local function in_reclaim_window(item, now)
  local used_at = item.lostRangeUsedAt
  return item.has_lane and now < math.max(item.takeBackUntil, item.lossUntil)
    and (used_at == 0 or now < used_at + RECLAIM_WINDOW_MS)
end

-- Record when the first number of the lost range may have got an end; 0 stands for none.
local function use_lost_range(item, at)
  if item.lostRangeUsedAt > 0 and item.lostRangeUsedAt <= at then return end
  item.lostRangeUsedAt = at
  redis.call('HSET', LINE, 'lostRangeUsedAt', format_number(at))
end

-- Return whether there is evidence that the store lost data: another server continues the line, or the
-- partition's loss is recorded.
local function has_evidence(item, now) return now < item.lossUntil or item.run ~= run_id() end

-- Return whether a user is entered, returning or missed: such a ticket is served before any reclaimed one.
local function has_live_ticket(user)
  return redis.call('HEXISTS', ENTERED, user) == 1 or redis.call('ZSCORE', RETURNING, user)
    or redis.call('HEXISTS', MISSED, user) == 1
end

-- Return whether a user waits with this number.
local function is_number_waiting(number)
  local n = format_number(number)
  return redis.call('ZCOUNT', WAITING, n, n) > 0
end

-- Return whether this number was lost and its holder has no live ticket.
local function is_reclaimable(item, user, number, now)
  return number >= item.validFrom and is_in_lost_range(item, number) and in_reclaim_window(item, now)
    and not end_reason_of(number) and not has_live_ticket(user) and not redis.call('ZSCORE', WAITING, user)
    and not is_number_waiting(number)
end

-- Return whether a further loss extends the range of lost numbers instead of starting a new one: at least
-- half of the reclaim window remains. A loss of the partition counts only for a line that began around
-- that time, because the ends of all numbers in the range must still be stored.
local function extends_lost_range(item, now)
  local half_window, ends_stored_until =
    now + RECLAIM_WINDOW_MS / 2, item.lostTo / NUMBERS_PER_MS + ENDED_RETENTION_MS
  return half_window < item.takeBackUntil
    or (half_window < item.lossUntil and item.lossUntil <= ends_stored_until)
end

-- Continue the counter at `base`. All waiting numbers are below the base afterwards; pods read that as the
-- first of the line's changes.
local function move_base(item, base)
  local frontier = first_above_base(item.base)
  if frontier then
    redis.call('LPUSH', DEPARTED, '+' .. format_number(frontier) .. ':' .. format_number(item.tail))
  end
  item.base, item.tail, cached_base, short_retention_start = base, base, base, nil
end

-- Continue the counter above every number that may have been issued, `given` among them.
local function advance_past_lost(item, given, now, recovery_hold)
  allow_oom(ITEM)
  if extends_lost_range(item, now) then
    -- Numbers issued since the range began get into it, and some of them have ended.
    use_lost_range(item, math.floor(item.lostTo / NUMBERS_PER_MS))
  else
    item.lostFrom, item.takeBackUntil, item.lostRangeUsedAt = item.tail + 1, now + RECLAIM_WINDOW_MS, 0
  end
  -- Reclaimed numbers may be lost again: restart a running recovery hold with its full duration.
  item.recoveringUntil = item.recoveringUntil > now and now + recovery_hold or 0
  -- A gap in the numbers of a cohort takes time to draw, so that it is small in the lobby.
  local clock = phase(item, now) == 'lobby' and 0 or math.min(now * NUMBERS_PER_MS, MAX_NUMBER)
  move_base(item, math.max(clock, math.max(item.tail, given) + LOSS_GAP))
  item.lostTo, item.run = item.base, run_id()
  redis.call('HSET', LINE, 'base', format_number(item.base), 'tail', format_number(item.tail),
    'lostFrom', format_number(item.lostFrom), 'takeBackUntil', format_number(item.takeBackUntil),
    'lostRangeUsedAt', format_number(item.lostRangeUsedAt), 'run', item.run)
  redis.call('HSET', ITEM, 'recoveringUntil', format_number(item.recoveringUntil),
    'behindUntil', format_number(now + recovery_hold))
end

-- Continue the counter above all lost numbers if another server continues the line, because that server may
-- not have the newest ones. Return the new state, or nil if this server wrote the line last.
local function detect_data_loss(run, now, recovery_hold)
  if run == run_id() then return nil end
  local item = load_recovery_state()
  advance_past_lost(item, item.tail, now, recovery_hold)
  return item
end
