-- Join users in the order of the call: each gets the ticket that they hold, a new one, or a refusal.
-- KEYS: line, then the current slice of liveness
-- ARGV: now (int, ms) · pod_quota (global quota per tick as the pod knows it) · recovery_hold (int, ms) ·
--       store_refusal (reply tag of new tickets, or '') · max_waiting (int, tickets in the whole store) ·
--       leave_cost (int, ms, 0 for no limit) · leave_window (int, ms) · users.. (ids, each once)
-- Reply: {tag, count, number, a, b} for each run of users whose replies follow from each other:
--   'W' new tickets with consecutive numbers and positions: a is the first position
--   'w' waits already: a is the position
--   both: a is 0 for a position that is not drawn yet, or that only pods can compute
--   'E' admitted by this call, with consecutive numbers, or 'e' entered: a is the admission, b the expiry
--   'n' not found   'd' disabled   's' sold out   'l' line full   'm' store out of memory
--   'o' not open yet   'z' closed
--   'c' left too often: a is how many ms to wait
-- Atomic: a user never holds two tickets of a line. At maxmemory a call that finds no ticket to serve fails
-- before its first write.
local item = item_fields('removed', 'enabled', 'stock', 'paused', 'tail', 'through', 'mode', 'id',
  'tokensPerTick', 'maxActive', 'maxWaiting', 'admitUpToStock', 'passTtlSeconds', 'onRejoin', 'run',
  'recoveringUntil', 'behindUntil', 'heldUntil', 'opening', 'lobbyAt', 'closesAt', 'openedAt', 'reveal',
  'cohortFirst', 'cohortSize')

-- Reply tag of an item that cannot be joined, or nil if it can.
local closed
local current_phase = phase(item, now)
if item.removed ~= '0' then closed = 'n'
elseif item.enabled ~= '1' then closed = 'd'
elseif current_phase == 'closed' then closed = 'z'
elseif current_phase == 'scheduled' then closed = 'o'
elseif item.stock == '0' then closed = 's' end
-- Reply tag with which new tickets are refused, or nil if they are issued.
local refusal = closed or (store_refusal ~= '' and store_refusal or nil)

local recovered = not closed and detect_data_loss(item.run, now, recovery_hold)
if recovered then item.tail, item.behindUntil = recovered.tail, now + recovery_hold end

local is_auto, expires_at = item.mode == 'auto', now + tonumber(item.passTtlSeconds or '0') * 1000
local quota = is_auto and global_quota(pod_quota) or 0
if quota > 0 and item.tokensPerTick and item.tokensPerTick ~= '' then quota = tonumber(item.tokensPerTick) end
if item.maxWaiting and item.maxWaiting ~= '' then
  max_waiting = math.min(max_waiting, tonumber(item.maxWaiting))
end

local tail, direct_admissions = tonumber(item.tail or '0'), tonumber(item.through or '0')
local tail_before, direct_before = tail, direct_admissions
-- New waiting tickets are added at the end of the script, in one ZADD. `waiting` includes them before that.
local added, added_count = {}, 0
local waiting, returning = redis.call('ZCARD', WAITING), redis.call('ZCARD', RETURNING)
local missed_count = redis.call('HLEN', MISSED)

-- Return what a set or hash holds of each user; an empty table if it is empty.
local function lookup_users(count, command, key)
  return count > 0 and redis.call(command, key, unpack(ARGV, USERS)) or {}
end
local waiting_numbers = lookup_users(waiting, 'ZMSCORE', WAITING)
local returning_numbers = lookup_users(returning, 'ZMSCORE', RETURNING)
local entries = lookup_users(redis.call('HLEN', ENTERED), 'HMGET', ENTERED)
local missed_turns = lookup_users(missed_count, 'HMGET', MISSED)
local leaves = leave_cost > 0 and lookup_users(redis.call('ZCARD', LEAVES), 'ZMSCORE', LEAVES) or {}

-- Return how many tickets count against max_waiting: those that missed their turn may return to the line.
local function in_line() return waiting + returning + missed_count end

-- Whether the order of the lobby is not drawn yet, so that no waiting ticket has a position.
local is_undecided = (item.reveal or '') ~= '' and (current_phase == 'lobby' or current_phase == 'scheduled')

-- Return whether the position of a waiting ticket is known here. Only pods can compute ranks of a cohort.
local function has_position(number)
  if is_undecided then return false end
  local first, size = tonumber(item.cohortFirst or ''), tonumber(item.cohortSize or '')
  return not size or number < first or number >= first + size
end

-- Return the position of a ticket in the line, or 0 if it is not known here.
local function position_of(user, number)
  local rank = redis.call('ZRANK', RETURNING, user)
  if rank then return rank + 1 end
  if not has_position(number) then return 0 end
  return returning + redis.call('ZRANK', WAITING, user) + 1
end

-- Return whether a new ticket is admitted directly, without waiting.
local function admits_directly()
  return is_auto and current_phase == 'open' and item.paused ~= '1' and direct_admissions < quota
    and waiting + returning == 0
    and tonumber(item.recoveringUntil or '0') <= now and tonumber(item.behindUntil or '0') <= now
    and tonumber(item.heldUntil or '0') <= now
    and free_capacity(item, slots_taken(now)) > 0
end

-- Return how many ms a user whose leaves count until `counted_until` must wait; 0 or less if they may join.
local function leave_wait(counted_until)
  if not counted_until then return 0 end
  return tonumber(counted_until) - now - (leave_window - leave_cost)
end

-- Return the reply for the ticket that user i holds, or nil for none. In an open line, end a ticket whose
-- time has passed, and with `requeue` one that waits.
local function existing_ticket(user, i)
  local number, admitted_at, expires_at = parse_entry(entries[i])
  if number then
    if expires_at > now then return {'e', 1, number, admitted_at, expires_at} end
    if not closed then
      redis.call('HDEL', ENTERED, user)
      end_ticket(user, number, 'E', now)
    end
    return nil
  end
  number = tonumber(waiting_numbers[i] or returning_numbers[i] or nil)
  if not number and missed_turns[i] then
    local missed_number, deadline = parse_missed(missed_turns[i])
    if not has_missed_turn_ended(deadline, now) then
      return_to_line(user, missed_number)
      returning, missed_count = returning + 1, missed_count - 1
      number = missed_number
    elseif not closed then
      delete_missed(user)
      missed_count = missed_count - 1
      end_ticket(user, missed_number, 'A', now)
    end
  end
  if not number then return nil end
  if item.onRejoin == 'requeue' and not refusal and in_line() <= max_waiting and leave_wait(leaves[i]) <= 0 then
    count_leave(user, leave_cost, leave_window, now)
    if waiting_numbers[i] then
      remove_waiting(user, number)
      waiting = waiting - 1
    else
      redis.call('ZREM', RETURNING, user)
      returning = returning - 1
    end
    end_ticket(user, number, 'R', now)
    return nil
  end
  return {'w', 1, number, position_of(user, number), 0}
end

-- Continue the counter at the clock if it is more than MAX_CLOCK_LAG_MS behind, so that a number encodes its
-- time of issue. No number is lost: the lost range stays as it is. Call it before the first number is issued.
local function follow_clock()
  -- The numbers of a cohort have no gap.
  if current_phase == 'lobby' and in_line() > 0 then return end
  local clock = math.min(now * NUMBERS_PER_MS, MAX_NUMBER)
  if clock - tail <= MAX_CLOCK_LAG_MS * NUMBERS_PER_MS then return end
  local state = load_recovery_state()
  move_base(state, clock)
  local base = format_number(clock)
  redis.call('HSET', ITEM, 'base', base, 'tail', base, 'clockBase', base, 'lostTo', format_number(state.lostTo))
  tail, tail_before = clock, clock
end

-- The last run of replies, and its tag if the next reply may extend it.
local replies, run, run_tag = {}, nil, nil
for i = 1, #ARGV - USERS + 1 do
  local user, reply = ARGV[USERS + i - 1], nil
  if waiting_numbers[i] or returning_numbers[i] or entries[i] or missed_turns[i] then
    -- Replies after an existing ticket do not follow from those before it.
    reply, run_tag = existing_ticket(user, i), nil
  end
  if reply then
    replies[#replies + 1] = reply
  else
    local wait = leaves[i] and math.max(leave_wait(leaves[i]), 0) or 0
    local tag = refusal or (wait > 0 and 'c') or (is_auto and admits_directly() and 'E')
      or (waiting + returning + missed_count >= max_waiting and 'l') or 'W'
    if tag == 'W' or tag == 'E' then
      if tail == tail_before then follow_clock() end
      tail = tail + 1
      if tag == 'W' then
        added[added_count + 1], added[added_count + 2] = tail, user
        added_count, waiting = added_count + 2, waiting + 1
      else
        direct_admissions = direct_admissions + 1
        admit(user, format_number(tail), expires_at)
      end
    end
    if tag == run_tag then
      run[2] = run[2] + 1
    else
      if tag == 'W' then run = {tag, 1, tail, is_undecided and 0 or returning + waiting, 0}
      elseif tag == 'E' then run = {tag, 1, tail, now, expires_at}
      else run = {tag, 1, 0, tag == 'c' and wait or 0, 0} end
      replies[#replies + 1] = run
      -- The wait differs for each user who left too often, so that such replies form no run.
      run_tag = tag ~= 'c' and tag
    end
  end
end

if tail > tail_before then
  if added_count > 0 then redis.call('ZADD', WAITING, unpack(added)) end
  redis.call('HSET', ITEM, 'tail', format_number(tail))
  redis.call('HINCRBY', ITEM, 'joined', tail - tail_before)
  if direct_admissions > direct_before then
    redis.call('HSET', ITEM, 'through', format_number(direct_admissions))
    record_progress(direct_admissions - direct_before, now)
  end
  redis.call('SADD', ACTIVE, item.id)
  local slice = math.floor(now / SLICE_MS)
  local last = tonumber(redis.call('ZREVRANGE', SLICE_STARTS, 0, 0, 'WITHSCORES')[2])
  if not last or last < slice then
    redis.call('ZADD', SLICE_STARTS, slice, format_number(tail_before + 1))
    local oldest = math.max(0, slice - LIVENESS_SLICES)
    redis.call('ZREMRANGEBYSCORE', SLICE_STARTS, '-inf', '(' .. format_number(oldest))
  end
end
commit(now, item.id)
return replies
