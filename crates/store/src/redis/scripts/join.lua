-- Joins people in the order given; each gets one answer, and one place whatever happens.
-- KEYS[22]: the current slice of liveness.
-- ARGV: 1 now · 2 global quota per tick · 3 how long a line waits for people it lost ·
--       4 why the store takes no new tickets, as their reply tag, or '' · 5 how many tickets may wait
--       in the whole store · 6 cost of a leave and 7 the window of leaves, in ms; cost 0: no limit ·
--       8.. user ids, each once
-- Reply: {tag, people, number, a, b} for each run of people whose answers follow from each other:
--   'W' took places, with consecutive numbers and positions: a is the first's
--   'w' waits already: a is the position
--   'E' let in by this call, with consecutive numbers, and 'e' is inside: a since when, b until when
--   'n' not found   'd' disabled   's' sold out   'l' line full   'm' store out of memory
--   'c' left too often: a is how many ms to wait
-- The common case, many newcomers, costs a handful of commands per batch, whatever its size.
local USERS = 8
local now, leave_cost, leave_window = tonumber(ARGV[1]), tonumber(ARGV[6]), tonumber(ARGV[7])
local item = item_fields('removed', 'enabled', 'stock', 'paused', 'tail', 'through', 'mode', 'id',
  'tokensPerTick', 'maxActive', 'maxWaiting', 'admitUpToStock', 'passTtlSeconds', 'onRejoin', 'run',
  'recoveringUntil', 'behindUntil', 'heldUntil')

local refused
if item.removed ~= '0' then refused = 'n'
elseif item.enabled ~= '1' then refused = 'd'
elseif item.stock == '0' then refused = 's' end

local hold = tonumber(ARGV[3])
local lifted = not refused and notice_loss(item.run, now, hold)
if lifted then item.tail, item.behindUntil = lifted.tail, now + hold end

local tail = tonumber(item.tail or '0')
local through = tonumber(item.through or '0')
local tail_before, through_before = tail, through
local quota = item.mode == 'auto' and global_quota(ARGV[2]) or 0
if quota > 0 and item.tokensPerTick and item.tokensPerTick ~= '' then quota = tonumber(item.tokensPerTick) end

-- People of this batch who take a place in the line are added at the end, in one ZADD. How many
-- stand where is counted here meanwhile, instead of asking for every one of them.
local added = {}
local waiting, returning = redis.call('ZCARD', WAITING), redis.call('ZCARD', RETURNING)

-- Why no new ticket is given although the line is open, or nil.
local full = ARGV[4] ~= '' and ARGV[4] or nil
local most_waiting = tonumber(ARGV[5])
if item.maxWaiting and item.maxWaiting ~= '' then
  most_waiting = math.min(most_waiting, tonumber(item.maxWaiting))
end
local missed_count = redis.call('HLEN', MISSED)

-- How many tickets count against the limit: who missed their turn may return to the line.
local function in_line() return waiting + returning + missed_count end

local function position_of(user)
  local rank = redis.call('ZRANK', RETURNING, user)
  if rank then return rank + 1 end
  return returning + redis.call('ZRANK', WAITING, user) + 1
end

local function passes_through()
  return item.mode == 'auto' and item.paused ~= '1' and through < quota
    and waiting + returning == 0
    and tonumber(item.recoveringUntil or '0') <= now and tonumber(item.behindUntil or '0') <= now
    and tonumber(item.heldUntil or '0') <= now
    and room(item, slots_taken(now)) > 0
end

-- Return how many ms a user must wait who left this line too often; 0 or less if they may join.
local function must_wait(counted_until)
  if not counted_until then return 0 end
  return tonumber(counted_until) - now - (leave_window - leave_cost)
end

-- The place a person holds already, or nil. Where they could take a new one, a place that is over
-- is ended here and now, and a place in the line may be given up for a new one.
local function existing(user, waits, returns, inside, missed, left)
  local number, at, expires = parse_entry(inside)
  if number then
    if expires > now then return {'e', 1, number, at, expires} end
    if not refused then
      forget_entry(user)
      close(user, number, 'E', now)
    end
    return nil
  end
  number = tonumber(waits or returns or nil)
  if not number and missed then
    local missed_number, deadline = parse_missed(missed)
    if not is_missed_over(deadline, now) then
      come_back(user, missed_number)
      returning, missed_count = returning + 1, missed_count - 1
      number = missed_number
    elseif not refused then
      forget_missed(user)
      missed_count = missed_count - 1
      close(user, missed_number, 'A', now)
    end
  end
  if not number then return nil end
  if item.onRejoin == 'requeue' and not refused and not full and in_line() <= most_waiting
    and must_wait(left) <= 0 then
    count_leave(user, leave_cost, leave_window, now)
    if waits then
      depart(user, number)
      waiting = waiting - 1
    else
      redis.call('ZREM', RETURNING, user)
      returning = returning - 1
    end
    close(user, number, 'R', now)
    return nil
  end
  return {'w', 1, number, position_of(user), 0}
end

-- Whoever follows a newcomer of the same kind lengthens that one's run.
local runs, run = {}, nil
local function answer(tag, number, a, b)
  if run and run[1] == tag then
    run[2] = run[2] + 1
  else
    run = {tag, 1, number, a, b}
    runs[#runs + 1] = run
  end
end

-- Prepare the counter for the first number of this call.
local function follow_clock_once()
  if tail > tail_before then return end
  tail = follow_clock(tail, now)
  tail_before = tail
end

local function newcomer(user, left)
  if refused or full then return answer(refused or full, 0, 0, 0) end
  local wait = must_wait(left)
  if wait > 0 then
    runs[#runs + 1], run = {'c', 1, 0, wait, 0}, nil
    return
  end
  local passes = passes_through()
  if not passes and in_line() >= most_waiting then return answer('l', 0, 0, 0) end
  follow_clock_once()
  tail = tail + 1
  if passes then
    through = through + 1
    local expires = now + tonumber(item.passTtlSeconds) * 1000
    enter(user, txt(tail), expires)
    return answer('E', tail, now, expires)
  end
  added[#added + 1] = tail
  added[#added + 1] = user
  waiting = waiting + 1
  answer('W', tail, returning + waiting, 0)
end

-- What is known of these people in a place where nobody need be: asked only if somebody is.
local function known(count, command, key)
  return count > 0 and redis.call(command, key, unpack(ARGV, USERS)) or {}
end
local waits = known(waiting, 'ZMSCORE', WAITING)
local returns = known(returning, 'ZMSCORE', RETURNING)
local inside = known(redis.call('HLEN', ENTERED), 'HMGET', ENTERED)
local missed = known(missed_count, 'HMGET', MISSED)
local leaves = leave_cost > 0 and known(redis.call('ZCARD', LEAVES), 'ZMSCORE', LEAVES) or {}

local people = #ARGV - USERS + 1

-- Whether anybody of the batch was found somewhere.
local function is_anybody(known)
  for i = 1, #known do
    if known[i] then return true end
  end
  return false
end

if refused or full or item.mode == 'auto' or in_line() + people > most_waiting or is_anybody(waits)
  or is_anybody(returns) or is_anybody(inside) or is_anybody(missed) or is_anybody(leaves) then
  for i = 1, people do
    local user, place = ARGV[USERS + i - 1], nil
    if waits[i] or returns[i] or inside[i] or missed[i] then
      -- Whatever comes of it, those behind do not follow from those before.
      place, run = existing(user, waits[i], returns[i], inside[i], missed[i], leaves[i]), nil
    end
    if place then runs[#runs + 1] = place else newcomer(user, leaves[i]) end
  end
else
  -- When a sale opens nearly every batch is of newcomers alone: the same as above, in fewer steps.
  follow_clock_once()
  for i = 1, people do
    added[2 * i - 1], added[2 * i] = tail + i, ARGV[USERS + i - 1]
  end
  runs[1] = {'W', people, tail + 1, returning + waiting + 1, 0}
  tail = tail + people
end

if tail > tail_before then
  if #added > 0 then redis.call('ZADD', WAITING, unpack(added)) end
  redis.call('HSET', ITEM, 'tail', txt(tail))
  redis.call('HINCRBY', ITEM, 'joined', tail - tail_before)
  if through > through_before then
    redis.call('HSET', ITEM, 'through', txt(through))
    moved(through - through_before, now)
  end
  redis.call('SADD', ACTIVE, item.id)
  local slice = math.floor(now / SLICE_MS)
  local last = tonumber(redis.call('ZREVRANGE', BIRTHS, 0, 0, 'WITHSCORES')[2])
  if not last or last < slice then
    redis.call('ZADD', BIRTHS, slice, txt(tail_before + 1))
    redis.call('ZREMRANGEBYSCORE', BIRTHS, '-inf', '(' .. txt(math.max(0, slice - SLICES_KEPT)))
  end
end
write_down(now, item.id)
return runs
