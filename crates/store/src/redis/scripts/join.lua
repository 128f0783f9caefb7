-- Join users to a lane in the order of the call: each gets the ticket that they hold in any lane, a new one, or a
-- refusal. A user who waits in another lane moves to the lane of the call, unless that is the standard one.
-- KEYS: line, then all lanes if the item has any, then the current slice of liveness
-- ARGV: now (int, ms) · pod_quota (global quota per tick as the pod knows it) · recovery_hold (int, ms) ·
--       store_refusal (reply tag of new tickets, or '') · max_waiting (int, tickets in the whole store) ·
--       leave_cost (int, ms, 0 for no limit) · leave_window (int, ms) ·
--       invitations (for each user a word id:uses:expiry in ms, or '-'; '' if no user has one) ·
--       users.. (ids, each once)
-- Reply: {'lanes', count, 0, 0, 0, 0} with nothing changed, if KEYS do not name all lanes; otherwise
--        {tag, count, number, a, b, lane} for each run of users whose replies follow from each other:
--   'W' new tickets with consecutive numbers and positions: a is the first position
--   'w' waits already: a is the position
--   both: a is 0 for a position that is not drawn yet, or that only pods can compute
--   'E' admitted by this call, with consecutive numbers, or 'e' entered: a is the admission, b the expiry
--   'n' not found   'd' disabled   's' sold out   'l' line full   'm' store out of memory
--   'o' not open yet   'z' closed
--   'c' left too often: a is how many ms to wait   'i' the invitation has no uses left
-- Atomic: a user never holds two tickets of a line. At maxmemory a call that finds no ticket to serve fails
-- before its first write.
local item = item_fields('removed', 'enabled', 'stock', 'paused', 'through', 'mode', 'id',
  'tokensPerTick', 'pace', 'paceQuota', 'paceFirst', 'maxActive', 'maxWaiting', 'admitUpToStock', 'passTtlSeconds', 'onRejoin',
  'recoveringUntil', 'behindUntil', 'heldUntil', 'opening', 'lobbyAt', 'closesAt', 'openedAt', 'lanes',
  'laneCount')
local lane, lacking = LANE, lacks_lanes(item.lanes, item.laneCount)
if lacking then return {{'lanes', lacking, 0, 0, 0, 0}} end
-- The policy has no such lane.
if lane > lane_shares(item.lanes) then return {{'n', #ARGV - USERS + 1, 0, 0, 0, 0}} end
begin_lane(now)
add_line_fields(item, {'tail', 'run', 'reveal', 'cohortFirst', 'cohortSize'})

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
if quota > 0 then quota = line_quota(item, quota) end
if item.maxWaiting and item.maxWaiting ~= '' then
  max_waiting = math.min(max_waiting, tonumber(item.maxWaiting))
end

local tail, direct_admissions = tonumber(item.tail or '0'), tonumber(item.through or '0')
local tail_before, direct_before = tail, direct_admissions
-- New waiting tickets are added at the end of the script, in one ZADD. `waiting` includes them before that.
local added, added_count = {}, 0

-- Return what a set or hash holds of each user; an empty table if it is empty.
local function lookup_users(count, command, key)
  return count > 0 and redis.call(command, key, unpack(ARGV, USERS)) or {}
end

-- Return the counts of the selected lane, and what it holds of each user.
local function load_lane()
  local held = {}
  held.lane, held.waiting, held.returning = LANE, redis.call('ZCARD', WAITING), redis.call('ZCARD', RETURNING)
  held.missed = redis.call('HLEN', MISSED)
  held.waiting_numbers = lookup_users(held.waiting, 'ZMSCORE', WAITING)
  held.returning_numbers = lookup_users(held.returning, 'ZMSCORE', RETURNING)
  held.entries = lookup_users(redis.call('HLEN', ENTERED), 'HMGET', ENTERED)
  held.missed_turns = lookup_users(held.missed, 'HMGET', MISSED)
  return held
end

-- The lane of the call, and the other ones.
local own, others = load_lane(), {}
for_each_lane(function()
  if LANE ~= lane then others[#others + 1] = load_lane() end
end)
local leaves = leave_cost > 0 and lookup_users(redis.call('ZCARD', LEAVES), 'ZMSCORE', LEAVES) or {}

-- Return how many tickets count against max_waiting: those that missed their turn may return to the line.
local function in_line()
  local tickets = own.waiting + own.returning + own.missed
  for _, other in ipairs(others) do tickets = tickets + other.waiting + other.returning + other.missed end
  return tickets
end

-- Return whether no ticket waits in any lane.
local function is_empty()
  local queued = own.waiting + own.returning
  for _, other in ipairs(others) do queued = queued + other.waiting + other.returning end
  return queued == 0
end

-- Return whether the position of a waiting ticket of a lane is known here. It is not while the order of the lobby
-- is not drawn, and only pods can compute ranks of a cohort. Only the standard lane is drawn.
local function has_position(of_lane, number)
  if of_lane > 0 then return true end
  local drawn = item
  if lane > 0 then drawn = item_fields('reveal', 'cohortFirst', 'cohortSize') end
  if (drawn.reveal or '') ~= '' and (current_phase == 'lobby' or current_phase == 'scheduled') then return false end
  local first, size = tonumber(drawn.cohortFirst or ''), tonumber(drawn.cohortSize or '')
  return not size or number < first or number >= first + size
end

-- Return the position of a ticket in the selected lane, or 0 if it is not known here.
local function position_of(user, number)
  local rank = redis.call('ZRANK', RETURNING, user)
  if rank then return rank + 1 end
  if not has_position(LANE, number) then return 0 end
  return redis.call('ZCARD', RETURNING) + redis.call('ZRANK', WAITING, user) + 1
end

-- Whether a new ticket that waits has a position.
local is_undecided = not has_position(lane, math.huge)

-- For each user the id, uses and expiry (ms) of an invitation.
local invitation_of = {}
for word in string.gmatch(invitations, '%S+') do
  local id, uses, expires = string.match(word, '^(%d+):(%d+):(%d+)$')
  invitation_of[#invitation_of + 1] = id and {id = id, uses = tonumber(uses), expires_at = tonumber(expires)} or false
end

-- Use the invitation of user i, once per user. Return whether it had a use left. The hash lives a day longer
-- than the last invitation in it.
local function redeem(user, i)
  local invitation = invitation_of[i]
  if not invitation or redis.call('HEXISTS', CODES, invitation.id .. ' ' .. user) == 1 then return true end
  if tonumber(redis.call('HGET', CODES, invitation.id) or '0') >= invitation.uses then return false end
  redis.call('HINCRBY', CODES, invitation.id, 1)
  redis.call('HSET', CODES, invitation.id .. ' ' .. user, '1')
  local ttl = invitation.expires_at - now + 86400000
  if redis.call('PTTL', CODES) < ttl then redis.call('PEXPIRE', CODES, format_number(ttl)) end
  return true
end

-- Return whether a new ticket is admitted directly, without waiting.
local function admits_directly()
  return is_auto and current_phase == 'open' and item.paused ~= '1' and direct_admissions < quota
    and is_empty()
    and tonumber(item.recoveringUntil or '0') <= now and tonumber(item.behindUntil or '0') <= now
    and tonumber(item.heldUntil or '0') <= now
    and free_capacity(item, slots_taken(now)) > 0
end

-- Return how many ms a user whose leaves count until `counted_until` must wait; 0 or less if they may join.
local function leave_wait(counted_until)
  if not counted_until then return 0 end
  return tonumber(counted_until) - now - (leave_window - leave_cost)
end

-- Return the reply for the ticket that user i holds in the selected lane, of which `held` is known, or nil for
-- none. In an open line, end a ticket whose time has passed.
local function existing_ticket(user, i, held)
  local number, admitted_at, expires_at = parse_entry(held.entries[i])
  if number then
    if expires_at > now then return {'e', 1, number, admitted_at, expires_at, LANE} end
    if not closed then
      redis.call('HDEL', ENTERED, user)
      end_ticket(user, number, 'E', now)
    end
    return nil
  end
  number = tonumber(held.waiting_numbers[i] or held.returning_numbers[i] or nil)
  if not number and held.missed_turns[i] then
    local missed_number, deadline = parse_missed(held.missed_turns[i])
    if not has_missed_turn_ended(deadline, now) then
      return_to_line(user, missed_number)
      held.returning, held.missed = held.returning + 1, held.missed - 1
      number = missed_number
    elseif not closed then
      delete_missed(user)
      held.missed = held.missed - 1
      end_ticket(user, missed_number, 'A', now)
    end
  end
  return number and {'w', 1, number, position_of(user, number), 0, LANE}
end

-- End the ticket of user i in the line of the selected lane, because the user takes a new one.
local function replace_ticket(user, i, number, held)
  count_leave(user, leave_cost, leave_window, now)
  if held.waiting_numbers[i] then
    remove_waiting(user, number)
    held.waiting = held.waiting - 1
  else
    redis.call('ZREM', RETURNING, user)
    held.returning = held.returning - 1
  end
  end_ticket(user, number, 'R', now)
end

-- Return whether a lane holds a ticket of user i.
local function holds(held, i)
  return held.waiting_numbers[i] or held.returning_numbers[i] or held.entries[i] or held.missed_turns[i]
end

-- Return the reply for the ticket that user i holds, or nil if the user takes a new one: with the policy
-- `requeue`, or because the user moves to another lane.
local function reply_for_existing(user, i)
  local may_replace = not refusal and leave_wait(leaves[i]) <= 0 and in_line() <= max_waiting
  local reply = holds(own, i) and existing_ticket(user, i, own)
  if reply then
    local requeues = lane == 0 and item.onRejoin == 'requeue' and reply[1] == 'w' and may_replace
    if not requeues then return reply end
    if not redeem(user, i) then return {'i', 1, 0, 0, 0, 0} end
    replace_ticket(user, i, reply[3], own)
    return nil
  end
  for _, other in ipairs(others) do
    if holds(other, i) then
      use_lane(other.lane)
      reply = existing_ticket(user, i, other)
      local moves = reply and lane > 0 and reply[1] == 'w' and may_replace
      if moves and not redeem(user, i) then
        reply = {'i', 1, 0, 0, 0, 0}
      elseif moves then
        replace_ticket(user, i, reply[3], other)
        use_lane(lane)
        return nil
      end
      use_lane(lane)
      if reply then return reply end
    end
  end
  return nil
end

-- Return whether any lane holds a ticket of user i.
local function is_known(i)
  if holds(own, i) then return true end
  for _, other in ipairs(others) do
    if holds(other, i) then return true end
  end
  return false
end

-- Continue the counter at the clock if it is more than MAX_CLOCK_LAG_MS behind, so that a number encodes its
-- time of issue. No number is lost: the lost range stays as it is. Call it before the first number is issued.
local function follow_clock()
  -- The numbers of a cohort have no gap.
  if current_phase == 'lobby' and own.waiting + own.returning + own.missed > 0 then return end
  local clock = math.min(now * NUMBERS_PER_MS, MAX_NUMBER)
  if clock - tail <= MAX_CLOCK_LAG_MS * NUMBERS_PER_MS then return end
  local state = load_recovery_state()
  move_base(state, clock)
  local base = format_number(clock)
  redis.call('HSET', LINE, 'base', base, 'tail', base, 'clockBase', base, 'lostTo', format_number(state.lostTo))
  tail, tail_before = clock, clock
end

-- The last run of replies, and its tag if the next reply may extend it.
local replies, run, run_tag = {}, nil, nil
for i = 1, #ARGV - USERS + 1 do
  local user, reply = ARGV[USERS + i - 1], nil
  if is_known(i) then
    -- Replies after an existing ticket do not follow from those before it.
    reply, run_tag = reply_for_existing(user, i), nil
  end
  if reply then
    replies[#replies + 1] = reply
  else
    local wait = leaves[i] and math.max(leave_wait(leaves[i]), 0) or 0
    local tag = refusal or (wait > 0 and 'c') or (is_auto and admits_directly() and 'E')
      or (in_line() >= max_waiting and 'l') or 'W'
    if (tag == 'W' or tag == 'E') and not redeem(user, i) then tag = 'i' end
    if tag == 'W' or tag == 'E' then
      if tail == tail_before then follow_clock() end
      tail = tail + 1
      if tag == 'W' then
        added[added_count + 1], added[added_count + 2] = tail, user
        added_count, own.waiting = added_count + 2, own.waiting + 1
      else
        direct_admissions = direct_admissions + 1
        admit(user, format_number(tail), expires_at)
      end
    end
    if tag == run_tag then
      run[2] = run[2] + 1
    else
      if tag == 'W' then run = {tag, 1, tail, is_undecided and 0 or own.returning + own.waiting, 0, lane}
      elseif tag == 'E' then run = {tag, 1, tail, now, expires_at, lane}
      else run = {tag, 1, 0, tag == 'c' and wait or 0, 0, 0} end
      replies[#replies + 1] = run
      -- The wait differs for each user who left too often, so that such replies form no run.
      run_tag = tag ~= 'c' and tag
    end
  end
end

if tail > tail_before then
  if added_count > 0 then redis.call('ZADD', WAITING, unpack(added)) end
  redis.call('HSET', LINE, 'tail', format_number(tail))
  redis.call('HINCRBY', LINE, 'joined', tail - tail_before)
  if direct_admissions > direct_before then
    -- No ticket of the cohort waits, and these numbers are behind it.
    if has_unserved_ranks() then redis.call('HSET', LINE, 'cohortServed', redis.call('HGET', LINE, 'cohortSize')) end
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
commit_lanes(now, item.id)
return replies
