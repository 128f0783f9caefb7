-- Admit tickets: returning ones first, then from the front of the line. A ticket that was not seen within the
-- grace period misses its turn instead. A line has one round per tick, even if another replica takes over: a
-- call within `min_interval` of the last round does nothing, so that neither a hand-over nor a retried round
-- exceeds the quota. All calls of a round pass the same `now`.
-- A drawn cohort is served by rank. Lua cannot compute ranks, so the caller passes the numbers of the ranks that
-- come next; this script looks them up. Numbers below the cohort come before it, all others after it.
-- KEYS: line, then slices of liveness from first_slice to the one after the current
-- ARGV: epoch · quota (int) · max_admissions (int, how many the outbox may hold) · now (int, ms) ·
--       max_users (int, per call) · first_slice (int) · min_interval (int, ms) · seed (of the
--       cohort that the caller knows, or '') · rank_from (int, how many of its ranks the caller takes as served) ·
--       ranked.. (the numbers of the next ranks)
-- Reply: {admitted, missed, remaining quota, 0|1 more, 0|1 outbox full, ranks served, 0|1 `ranked` is used up},
--        or with nothing changed {'slices', grace seconds}, if KEYS do not reach back far enough, or
--        {'ranks', first, size, served, seed}, if `ranked` does not begin with the next rank
-- Atomic: an entry and its event are written together; a stale epoch changes nothing.
if is_stale(epoch) then return STALE end
local item = item_fields('removed', 'enabled', 'stock', 'paused', 'through', 'id', 'maxActive',
  'admitUpToStock', 'passTtlSeconds', 'graceSeconds', 'missedKeepSeconds', 'base',
  'recoveringUntil', 'behindUntil', 'servedAt', 'heldUntil', 'tokensPerTick', 'stopped', 'servableSince',
  'opening', 'lobbyAt', 'closesAt', 'openedAt', 'cohortFirst', 'cohortSize', 'cohortServed', 'drawSeed')
-- The operator may have set the quota to 0 after this round began.
if global_quota('1') == 0 then quota = 0 end
if not item.id then return {0, 0, quota, 0, 0, 0, 0} end

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
  redis.call('HSET', ITEM, 'stopped', '0', 'servableSince', format_number(now), 'moves', '')
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
local is_present, are_all_present = always, always
if grace > 0 then is_present, are_all_present = liveness_since(oldest, first_slice) end
local base, departed_below_base = tonumber(item.base or '0'), {}
local expires_at, missed_keep = now + tonumber(item.passTtlSeconds) * 1000, tonumber(item.missedKeepSeconds) * 1000
local free = math.min(quota, free_capacity(item, slots_taken(now)), outbox_free)
local admitted, missed = 0, 0

-- The highest number that may be admitted: the base while lost numbers may be reclaimed.
local last_admissible = tonumber(item.behindUntil or '0') > now and base or math.huge

-- Return how many waiting tickets up to number `last` may be admitted.
local function admissible_count(last)
  last = math.min(last, last_admissible)
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

-- Return whether this call may admit more tickets.
local function has_budget() return admitted < free and admitted + missed < max_users end

-- Admit from the front of `queue`, at most `count` tickets, until quota or call limit is used up. Each step
-- takes as many tickets as can be admitted; the next step uses the part of the quota that missed turns left.
local function admit_from(queue, count)
  while count > 0 and has_budget() do
    local tickets = redis.call('ZPOPMIN', queue, math.min(free - admitted, max_users - admitted - missed, count))
    count = count - #tickets / 2
    if queue == WAITING and tonumber(tickets[2]) <= base then log_departures_below_base(tickets) end
    admit_present(tickets)
  end
end

-- Admit the tickets of the next ranks, as far as they still wait.
local function admit_ranked()
  local at, taken = RANKED, {}
  while at <= #ARGV and has_budget() do
    local n = ARGV[at]
    local user = redis.call('ZRANGEBYSCORE', WAITING, n, n)[1]
    if user then
      taken[#taken + 1] = user
      if tonumber(n) <= base then departed_below_base[#departed_below_base + 1] = n end
      admit_or_miss(user, n)
    end
    at = at + 1
  end
  if #taken > 0 then redis.call('ZREM', WAITING, unpack(taken)) end
  served = rank_from + at - RANKED
  redis.call('HSET', ITEM, 'cohortServed', format_number(served))
end

admit_from(RETURNING, redis.call('ZCARD', RETURNING))
local ranks_used_up = 0
if served then
  local first, size = tonumber(item.cohortFirst), tonumber(item.cohortSize)
  admit_from(WAITING, admissible_count(first - 1))
  if has_budget() and first + size - 1 <= last_admissible then
    admit_ranked()
    if served < size and has_budget() then ranks_used_up = 1 end
    if served == size then admit_from(WAITING, admissible_count(math.huge)) end
  end
else
  admit_from(WAITING, admissible_count(math.huge))
end
if #departed_below_base > 0 then redis.call('RPUSH', DEPARTED, unpack(departed_below_base)) end
if admitted + missed > 0 then record_progress(admitted + missed, now) end
commit(now, item.id, epoch)
local left = admissible_count(math.huge) + redis.call('ZCARD', RETURNING)
return {admitted, missed, quota - admitted, (left > 0 and admitted < free) and 1 or 0, 0, served or 0, ranks_used_up}
