-- Lets people in: those who came back first, then from the frontier. Whoever was not seen within
-- the grace period is put aside instead. Entry and event are one step. A line is served once per
-- tick, whoever leads: a new leader, or one that tries a round again, comes too early for lines that
-- were served. All calls of a round have the same time.
-- KEYS[22..]: slices of liveness from ARGV[6] on, to the one after the current.
-- ARGV: 1 epoch · 2 quota · 3 most admissions the outbox may hold · 4 now · 5 most people per call ·
--       6 the first slice in KEYS · 7 how long after the last round the next may begin
-- Reply: {admitted, missed, remaining, 0|1 more, 0|1 outbox full}, or
--        {'slices', grace seconds} with nothing done, if KEYS do not reach back far enough
if is_stale(ARGV[1]) then return STALE end
local quota, outbox_max, now, chunk = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local item = item_fields('removed', 'enabled', 'stock', 'paused', 'through', 'id', 'maxActive',
  'admitUpToStock', 'passTtlSeconds', 'graceSeconds', 'missedKeepSeconds', 'base',
  'recoveringUntil', 'behindUntil', 'servedAt', 'heldUntil', 'tokensPerTick', 'stopped', 'servableSince')
-- The operator may have set the quota to 0 since this round began.
if global_quota('1') == 0 then quota = 0 end
if not item.id then return {0, 0, quota, 0, 0} end

-- A time to come is another clock's, and says nothing.
local since = now - tonumber(item.servedAt or '0')
if since > 0 and since < tonumber(ARGV[7]) then return {0, 0, 0, 0, 0} end

local outbox_room = outbox_max - admissions_pending()
local held_until = tonumber(item.heldUntil or '0')
if outbox_room <= 0 then
  allow_oom(ITEM)
  -- Ends by itself, in case the next leader is of a release that does not know it.
  redis.call('HSET', ITEM, 'stopped', '1', 'heldUntil', txt(now + HELD_MS + 3 * tonumber(ARGV[7])))
  return {0, 0, quota, 0, 1}
end

-- Absence does not count while the line can admit no ticket, and from then on each user has the full time.
local stopped, servable_since = quota == 0 or is_stopped(item, now), tonumber(item.servableSince or '0')
if not stopped and item.stopped == '1' then servable_since = now end
local grace = tonumber(item.graceSeconds or '0')
if stopped or now - servable_since < grace * 1000 then grace = 0 end
local oldest = oldest_slice(now, grace)
if grace > 0 and oldest < tonumber(ARGV[6]) then return {'slices', grace} end

allow_oom(ITEM)
if held_until > 0 then redis.call('HSET', ITEM, 'heldUntil', '0') end
if stopped and item.stopped ~= '1' then
  redis.call('HSET', ITEM, 'stopped', '1')
elseif not stopped and item.stopped == '1' then
  -- The speed before the stop says nothing about the speed from now on.
  redis.call('HSET', ITEM, 'stopped', '0', 'servableSince', txt(now), 'moves', '')
end
-- Those who passed through since the last tick have used their part of it.
if item.through ~= '0' then
  quota = math.max(0, quota - tonumber(item.through))
  redis.call('HSET', ITEM, 'through', '0')
end
if item.removed ~= '0' or item.enabled ~= '1' or item.stock == '0' or item.paused == '1'
  or tonumber(item.recoveringUntil or '0') > now then
  return {0, 0, quota, 0, 0}
end

if since ~= 0 then redis.call('HSET', ITEM, 'servedAt', txt(now)) end
local function always() return true end
local seen, all_seen = always, always
if grace > 0 then seen, all_seen = seen_since(oldest, tonumber(ARGV[6])) end
local expires, keep = now + tonumber(item.passTtlSeconds) * 1000, tonumber(item.missedKeepSeconds) * 1000

-- How many of the line may be served: nobody behind the base while those who were lost may still
-- come back.
local function servable()
  if tonumber(item.behindUntil or '0') <= now then return redis.call('ZCARD', WAITING) end
  return redis.call('ZCOUNT', WAITING, '-inf', item.base)
end

local began, left_below = tonumber(item.base or '0'), {}
local free = math.min(quota, room(item, slots_taken(now)), outbox_room)
local admitted, missed = 0, 0

local function put_aside(user, number)
  if keep == 0 then
    close(user, number, 'A', now)
  else
    redis.call('HSET', MISSED, user, txt(number) .. ':' .. txt(now + keep))
    redis.call('ZADD', MISSED_UNTIL, now + keep, user)
  end
  missed = missed + 1
end

-- Those below the base leave a mark, because lower ones may still come back.
local function leave_below(people)
  for i = 2, #people, 2 do
    if tonumber(people[i]) > began then break end
    left_below[#left_below + 1] = people[i]
  end
end

-- Lets those in who are still there. Mostly all are, which is told of many at once.
local function let_in(people, first, last)
  if all_seen(first, last) then
    enter_all(people, expires)
    admitted = admitted + #people / 2
    return
  end
  for i = 1, #people, 2 do
    local user, n = people[i], people[i + 1]
    if seen(tonumber(n)) then
      enter(user, n, expires)
      admitted = admitted + 1
    else
      put_aside(user, tonumber(n))
    end
  end
end

-- Serves the front of a queue, at most so many, until the quota or the chunk is used up. As many are
-- taken as can be let in; the places of those put aside go to the next round.
local function serve(queue, most)
  while most > 0 and admitted < free and admitted + missed < chunk do
    local people = redis.call('ZPOPMIN', queue, math.min(free - admitted, chunk - admitted - missed, most))
    local first, last = tonumber(people[2]), tonumber(people[#people])
    most = most - #people / 2
    if queue == WAITING and first <= began then leave_below(people) end
    let_in(people, first, last)
  end
end

serve(RETURNING, redis.call('ZCARD', RETURNING))
serve(WAITING, servable())
if #left_below > 0 then redis.call('RPUSH', DEPARTED, unpack(left_below)) end
if admitted + missed > 0 then moved(admitted + missed, now) end
write_down(now, item.id, ARGV[1])
local left = servable() + redis.call('ZCARD', RETURNING)
return {admitted, missed, quota - admitted, (left > 0 and admitted < free) and 1 or 0, 0}
