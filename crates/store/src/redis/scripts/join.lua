-- Joins people in the order given; each gets one answer, and one place whatever happens.
-- KEYS[17]: the current slice of liveness.
-- ARGV: 1 now · 2 global quota per tick · 3.. user ids
-- Reply: {tag, number, a, b} per person:
--   'w' waiting, new 0|1, position   'e' entered, at, expires   'E' the same, let in by this call
--   'n' not found   'd' disabled   's' sold out
-- The common case, many newcomers, costs a handful of commands per batch, whatever its size.
local now, global_quota = tonumber(ARGV[1]), tonumber(ARGV[2])
local item = item_fields('removed', 'enabled', 'stock', 'paused', 'tail', 'through', 'mode', 'id',
  'tokensPerTick', 'maxActive', 'admitUpToStock', 'passTtlSeconds', 'onRejoin')

local refused
if item.removed ~= '0' then refused = 'n'
elseif item.enabled ~= '1' then refused = 'd'
elseif item.stock == '0' then refused = 's' end

local tail = tonumber(item.tail or '0')
local through = tonumber(item.through or '0')
local tail_before, through_before = tail, through
local quota = global_quota
if item.tokensPerTick and item.tokensPerTick ~= '' then quota = tonumber(item.tokensPerTick) end

-- People of this batch who take a place in the line are added at the end, in one ZADD. How many
-- stand where is counted here meanwhile, instead of asking for every one of them.
local added = {}
local waiting, returning = redis.call('ZCARD', WAITING), redis.call('ZCARD', RETURNING)

local function position_of(user)
  local rank = redis.call('ZRANK', RETURNING, user)
  if rank then return rank + 1 end
  return returning + redis.call('ZRANK', WAITING, user) + 1
end

local function passes_through()
  return item.mode == 'auto' and item.paused ~= '1' and through < quota
    and waiting + returning == 0
    and room(item, inside_count()) > 0
end

-- The place a person holds already, or nil. Where they could take a new one, a place that is over
-- is ended here and now, and a place in the line may be given up for a new one.
local function existing(user, waits, returns, inside, missed)
  local number, at, expires = parse_entry(inside)
  if number then
    if expires > now then return {'e', number, at, expires} end
    if not refused then
      forget_entry(user)
      close(user, number, 'E', now)
    end
    return nil
  end
  number = tonumber(waits or returns or nil)
  if not number and missed then
    local missed_number, deadline = parse_missed(missed)
    if deadline > now then
      come_back(user, missed_number)
      returning = returning + 1
      number = missed_number
    elseif not refused then
      forget_missed(user)
      close(user, missed_number, 'A', now)
    end
  end
  if not number then return nil end
  if item.onRejoin == 'requeue' and not refused then
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
  return {'w', number, 0, position_of(user)}
end

local function newcomer(user)
  if refused then return {refused} end
  tail = tail + 1
  if passes_through() then
    through = through + 1
    moved(1, now)
    enter(user, tail, now, tonumber(item.passTtlSeconds))
    return {'E', tail, now, now + tonumber(item.passTtlSeconds) * 1000}
  end
  added[#added + 1] = tail
  added[#added + 1] = user
  waiting = waiting + 1
  return {'w', tail, 1, returning + waiting}
end

local users = {unpack(ARGV, 3)}
local waits = redis.call('ZMSCORE', WAITING, unpack(users))
local returns = redis.call('ZMSCORE', RETURNING, unpack(users))
local inside = redis.call('HMGET', ENTERED, unpack(users))
local missed = redis.call('HMGET', MISSED, unpack(users))

local answers, answered = {}, {}
for i, user in ipairs(users) do
  local before = answered[user]
  if before then
    -- In one batch twice: one place, heard of twice.
    answers[i] = {before[1], before[2], before[3], before[4]}
    if before[1] == 'w' then answers[i][3] = 0 elseif before[1] == 'E' then answers[i][1] = 'e' end
  else
    answers[i] = existing(user, waits[i], returns[i], inside[i], missed[i]) or newcomer(user)
    answered[user] = answers[i]
  end
end

if tail > tail_before then
  if #added > 0 then redis.call('ZADD', WAITING, unpack(added)) end
  redis.call('HSET', ITEM, 'tail', txt(tail))
  redis.call('HINCRBY', ITEM, 'joined', tail - tail_before)
  if through > through_before then redis.call('HSET', ITEM, 'through', txt(through)) end
  redis.call('SADD', ACTIVE, item.id)
  local slice = math.floor(now / SLICE_MS)
  local last = tonumber(redis.call('ZREVRANGE', BIRTHS, 0, 0, 'WITHSCORES')[2])
  if not last or last < slice then
    redis.call('ZADD', BIRTHS, slice, txt(tail_before + 1))
    redis.call('ZREMRANGEBYSCORE', BIRTHS, '-inf', '(' .. txt(math.max(0, slice - SLICES_KEPT)))
  end
end
write_down(now, item.id)
return answers
