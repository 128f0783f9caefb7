-- Admit tickets: returning ones first, then from the front of the line. Lanes share the quota by their weights. A
-- ticket that was not seen within the grace period misses its turn instead. A line has one round per tick, even if another replica takes over: a
-- call within `min_interval` of the last round does nothing, so that neither a hand-over nor a retried round
-- exceeds the quota. All calls of a round pass the same `now`.
-- A drawn cohort is served by rank. Lua cannot compute ranks, so the caller passes the numbers of the ranks that
-- come next; this script looks them up. Numbers below the cohort come before it, all others after it.
-- KEYS: line of the standard lane, then all lanes if the item has any, then slices of liveness from first_slice to
--       the one after the current
-- ARGV: epoch · quota (int) · max_admissions (int, how many the outbox may hold) · now (int, ms) ·
--       max_users (int, per call) · first_slice (int) · min_interval (int, ms) · seed (of the
--       cohort that the caller knows, or '') · rank_from (int, how many of its ranks the caller takes as served) ·
--       ranked.. (the numbers of the next ranks)
-- Reply: {admitted, missed, remaining quota, 0|1 more, 0|1 outbox full, ranks served, 0|1 `ranked` is used up},
--        or with nothing changed {'slices', grace seconds}, if KEYS do not reach back far enough,
--        {'lanes', count}, if KEYS do not name all lanes, or {'ranks', first, size, served, seed}, if `ranked`
--        does not begin with the next rank
-- Atomic: an entry and its event are written together; a stale epoch changes nothing.
if is_stale(epoch) then return STALE end
local item = item_fields('removed', 'enabled', 'stock', 'paused', 'through', 'id', 'maxActive',
  'admitUpToStock', 'passTtlSeconds', 'graceSeconds', 'missedKeepSeconds', 'lanes', 'laneCount', 'laneLeads',
  'recoveringUntil', 'behindUntil', 'servedAt', 'heldUntil', 'tokensPerTick', 'stopped', 'servableSince',
  'opening', 'lobbyAt', 'closesAt', 'openedAt', 'cohortFirst', 'cohortSize', 'cohortServed', 'drawSeed')
-- The operator may have set the quota to 0 after this round began.
if global_quota('1') == 0 then quota = 0 end
if not item.id then return {0, 0, quota, 0, 0, 0, 0} end
local lacking = lacks_lanes(item.lanes, item.laneCount)
if lacking then return {'lanes', lacking} end
local lanes, shares = lane_shares(item.lanes)

-- `servedAt` in the future means clock skew between replicas: ignore it and run the round.
local since = now - tonumber(item.servedAt or '0')
if since > 0 and since < min_interval then return {0, 0, 0, 0, 0, 0, 0} end

-- Return how many admissions the outbox holds. Limit the count to that of all events, because a relay of a
-- release that does not maintain it leaves it too high.
local function admissions_pending()
  local events, admissions = unpack(redis.call('MGET', OUTBOX_EVENTS, OUTBOX_ADMISSIONS))
  return math.max(0, math.min(tonumber(events or '0'), tonumber(admissions or events or '0')))
end

local outbox_free = max_admissions - admissions_pending()
if outbox_free <= 0 then
  allow_oom(ITEM)
  -- The mark expires, because the next leader may be of a release that does not clear it.
  redis.call('HSET', ITEM, 'stopped', '1', 'heldUntil', format_number(now + HELD_MS + 3 * min_interval))
  return {0, 0, quota, 0, 1, 0, 0}
end

-- Absence does not count while the line can admit no ticket. After a stop each user has the full grace period
-- again.
local stopped, servable_since = quota == 0 or is_stopped(item, now), tonumber(item.servableSince or '0')
if not stopped and item.stopped == '1' then servable_since = now end
local grace = tonumber(item.graceSeconds or '0')
if stopped or now - servable_since < grace * 1000 then grace = 0 end
local oldest = oldest_slice(now, grace)
if grace > 0 and oldest < first_slice then return {'slices', grace} end

-- The ranks of the cohort that were served, while there are others; nil otherwise.
local served
if (item.drawSeed or '') ~= '' and tonumber(item.cohortServed) < tonumber(item.cohortSize) then
  served = tonumber(item.cohortServed)
  if served ~= rank_from or item.drawSeed ~= seed then
    return {'ranks', tonumber(item.cohortFirst), tonumber(item.cohortSize), served, item.drawSeed}
  end
end

allow_oom(ITEM)
if tonumber(item.heldUntil or '0') > 0 then redis.call('HSET', ITEM, 'heldUntil', '0') end
if stopped and item.stopped ~= '1' then
  redis.call('HSET', ITEM, 'stopped', '1')
elseif not stopped and item.stopped == '1' then
  -- The speed before the stop does not predict the speed from now on.
  redis.call('HSET', ITEM, 'stopped', '0', 'servableSince', format_number(now))
  for_each_lane(function()
    if redis.call('EXISTS', LINE) == 1 then redis.call('HSET', LINE, 'moves', '') end
  end)
end
-- Direct admissions since the last tick have used part of this tick's quota.
if item.through ~= '0' then
  quota = math.max(0, quota - tonumber(item.through))
  redis.call('HSET', ITEM, 'through', '0')
end
if item.removed ~= '0' or item.enabled ~= '1' or item.stock == '0' or item.paused == '1'
  or phase(item, now) ~= 'open' or tonumber(item.recoveringUntil or '0') > now then
  return {0, 0, quota, 0, 0, served or 0, 0}
end

if since ~= 0 then redis.call('HSET', ITEM, 'servedAt', format_number(now)) end
local function always() return true end
local expires_at, missed_keep = now + tonumber(item.passTtlSeconds) * 1000, tonumber(item.missedKeepSeconds) * 1000
local free = math.min(quota, free_capacity(item, slots_taken(now)), outbox_free)
local admitted, missed = 0, 0

-- What this call reads once of each lane: the slices of liveness and the base.
local lane_state = {}
local base, departed_below_base, is_present, are_all_present

-- Select a lane, and load it.
local function enter_lane(lane)
  if LANE_COUNT > 0 then use_lane(lane) end
  if not lane_state[lane] then
    local state = {}
    state.base, state.departed_below_base, state.moved = line_base(), {}, 0
    state.is_present, state.are_all_present = always, always
    if grace > 0 then state.is_present, state.are_all_present = liveness_since(oldest, first_slice) end
    lane_state[lane] = state
  end
  local state = lane_state[lane]
  base, departed_below_base = state.base, state.departed_below_base
  is_present, are_all_present = state.is_present, state.are_all_present
end

-- Return the highest number of the lane that may be admitted: the base while lost numbers may be reclaimed.
local function last_admissible() return tonumber(item.behindUntil or '0') > now and base or math.huge end

-- Return how many waiting tickets of the lane up to number `last` may be admitted.
local function admissible_count(last)
  last = math.min(last, last_admissible())
  if last == math.huge then return redis.call('ZCARD', WAITING) end
  return redis.call('ZCOUNT', WAITING, '-inf', format_number(last))
end

-- Move a ticket to the missed turns, or end it if the policy does not keep those.
local function mark_missed(user, number)
  if missed_keep == 0 then
    end_ticket(user, number, 'A', now)
  else
    redis.call('HSET', MISSED, user, format_number(number) .. ':' .. format_number(now + missed_keep))
    redis.call('ZADD', MISSED_UNTIL, now + missed_keep, user)
  end
  missed = missed + 1
end

-- Collect the numbers at or below the base, because lower ones may still be reclaimed, so that pods cannot
-- derive these departures from the front. `tickets` is in ascending order.
local function log_departures_below_base(tickets)
  for i = 2, #tickets, 2 do
    if tonumber(tickets[i]) > base then break end
    departed_below_base[#departed_below_base + 1] = tickets[i]
  end
end

-- Admit a ticket whose user is present; otherwise the ticket misses its turn.
local function admit_or_miss(user, n)
  if is_present(tonumber(n)) then
    admit(user, n, expires_at)
    admitted = admitted + 1
  else
    mark_missed(user, tonumber(n))
  end
end

-- Admit those of the tickets (user, number, …) whose users are present. Check the whole range first, because
-- mostly all users are present.
local function admit_present(tickets)
  if are_all_present(tonumber(tickets[2]), tonumber(tickets[#tickets])) then
    admit_all(tickets, expires_at)
    admitted = admitted + #tickets / 2
    return
  end
  for i = 1, #tickets, 2 do
    admit_or_miss(tickets[i], tickets[i + 1])
  end
end

-- Return how many tickets this call may still handle.
local function budget() return math.min(free - admitted, max_users - admitted - missed) end

-- Admit from the front of `queue`, at most `count` tickets. Return how many of `count` are left.
local function admit_from(queue, count, available)
  local take = math.min(count, available)
  while take > 0 do
    local tickets = redis.call('ZPOPMIN', queue, take)
    if #tickets == 0 then return count end
    take, count = take - #tickets / 2, count - #tickets / 2
    if queue == WAITING and tonumber(tickets[2]) <= base then log_departures_below_base(tickets) end
    admit_present(tickets)
  end
  return count
end

-- Admit at most `count` tickets of the next ranks, as far as they still wait. Return how many are left.
local next_rank = RANKED
local function admit_ranked(count)
  local taken = {}
  while next_rank <= #ARGV and count > 0 do
    local n = ARGV[next_rank]
    local user = redis.call('ZRANGEBYSCORE', WAITING, n, n)[1]
    if user then
      taken[#taken + 1], count = user, count - 1
      if tonumber(n) <= base then departed_below_base[#departed_below_base + 1] = n end
      admit_or_miss(user, n)
    end
    next_rank = next_rank + 1
  end
  if #taken > 0 then redis.call('ZREM', WAITING, unpack(taken)) end
  served = rank_from + next_rank - RANKED
  redis.call('HSET', LINE, 'cohortServed', format_number(served))
  return count
end

local cohort_first, cohort_size = tonumber(item.cohortFirst or ''), tonumber(item.cohortSize or '')

-- Return whether ranks of the cohort may be served in the selected lane.
local function serves_ranks()
  return LANE == 0 and served and served < cohort_size and cohort_first + cohort_size - 1 <= last_admissible()
end

-- Serve `count` tickets of a lane. Numbers below a cohort come before it, all others after it.
local function serve(lane, count)
  enter_lane(lane)
  local before = admitted + missed
  count = admit_from(RETURNING, count, redis.call('ZCARD', RETURNING))
  if LANE == 0 and served then
    count = admit_from(WAITING, count, admissible_count(cohort_first - 1))
    if count > 0 and serves_ranks() then count = admit_ranked(count) end
    if served == cohort_size then admit_from(WAITING, count, admissible_count(math.huge)) end
  else
    admit_from(WAITING, count, admissible_count(math.huge))
  end
  lane_state[lane].moved = lane_state[lane].moved + admitted + missed - before
end

-- How far the service of each lane is ahead of the others'.
local leads, lane_count = {}, 0
for lead in string.gmatch(item.laneLeads or '', '%d+') do
  leads[lane_count], lane_count = tonumber(lead), lane_count + 1
end

-- Return how many tickets of each lane may be admitted.
local function demands()
  local counts = {}
  for lane = 0, lanes do
    enter_lane(lane)
    counts[lane] = redis.call('ZCARD', RETURNING) + admissible_count(math.huge)
  end
  return counts
end

-- Return what one admission adds to the lead of a lane.
local function stride(lane) return math.floor(STRIDE / shares[lane]) end

-- Return how many tickets of each lane are served next, or nil for none. See crates/domain/src/lane/share.rs.
local function plan(counts, left)
  if lanes == 0 then
    local count = math.min(counts[0], left)
    return count > 0 and {[0] = count} or nil
  end
  local planned, is_empty = {}, true
  for lane = 0, lanes do
    planned[lane] = shares[lane] == 'first' and math.min(counts[lane], left) or 0
    left = left - planned[lane]
    if planned[lane] > 0 then is_empty = false end
  end
  while left > 0 do
    local next_lane, lowest
    for lane = 0, lanes do
      if shares[lane] ~= 'first' and planned[lane] < counts[lane] then
        local lead = (leads[lane] or 0) + planned[lane] * stride(lane)
        if not lowest or lead < lowest then next_lane, lowest = lane, lead end
      end
    end
    if not next_lane then break end
    planned[next_lane], left, is_empty = planned[next_lane] + 1, left - 1, false
  end
  return not is_empty and planned or nil
end

-- Move the leads on after `served_by_lane` tickets of each lane were admitted, relative to the lowest lead among
-- lanes that had tickets.
local function move_leads(counts, served_by_lane)
  local lowest
  for lane = 0, lanes do
    local is_first = shares[lane] == 'first'
    leads[lane] = (leads[lane] or 0) + (is_first and 0 or served_by_lane[lane] * stride(lane))
    if not is_first and counts[lane] > 0 then lowest = math.min(lowest or math.huge, leads[lane]) end
  end
  local words = {}
  for lane = 0, lanes do
    leads[lane] = math.max(0, leads[lane] - (lowest or 0))
    words[lane + 1] = format_number(leads[lane])
  end
  redis.call('HSET', ITEM, 'laneLeads', table.concat(words, ' '))
end

local ranks_used_up = 0
while budget() > 0 do
  local left, counts = budget(), demands()
  local planned = plan(counts, left)
  if not planned then
    -- Departed ranks at the end of the cohort are served without a ticket.
    enter_lane(0)
    if serves_ranks() then
      admit_ranked(left)
      if served < cohort_size then ranks_used_up = 1 end
    end
    break
  end
  local served_by_lane, handled = {}, admitted + missed
  for lane = 0, lanes do
    local before = admitted
    if planned[lane] > 0 then serve(lane, planned[lane]) end
    served_by_lane[lane] = admitted - before
  end
  if lanes > 0 then move_leads(counts, served_by_lane) end
  enter_lane(0)
  -- The next call brings more ranks.
  if serves_ranks() and next_rank > #ARGV and budget() > 0 then ranks_used_up = 1 end
  if ranks_used_up == 1 or admitted + missed == handled then break end
end

local left = 0
for lane = 0, lanes do
  enter_lane(lane)
  if #departed_below_base > 0 then redis.call('RPUSH', DEPARTED, unpack(departed_below_base)) end
  if lane_state[lane].moved > 0 then record_progress(lane_state[lane].moved, now) end
  left = left + redis.call('ZCARD', RETURNING) + admissible_count(math.huge)
end
if LANE_COUNT > 0 then use_lane(0) end
commit_lanes(now, item.id, epoch)
return {admitted, missed, quota - admitted, (left > 0 and admitted < free) and 1 or 0, 0, served or 0, ranks_used_up}
