-- What became of genuine tickets. Who missed their turn and asks in time comes back, ahead of the
-- line; whose number was lost is put back where it belongs, and the first of them begins the time
-- in which nobody is let in. A number is lost only if there is evidence that the store lost data; otherwise
-- it is of another store.
-- KEYS[22]: the current slice of liveness.
-- ARGV: 1 now · 2 how long a line waits for people it lost · 3 the generation the process knows ·
--       4 an id for a partition that has none · 5.. user, number, …
-- Reply: {tag, a, b} per ticket: 'w' waiting, position · 'e' entered, at, expires ·
--        'x' ended, reason · 'r' from before a restart · 'n' no such item any more ·
--        'f' nothing is known of such an item
local now, hold = tonumber(ARGV[1]), tonumber(ARGV[2])
local item = losses(check_generation(GENERATION, ARGV[3], ARGV[4], now))

local function waits(user)
  return {'w', redis.call('ZCARD', RETURNING) + redis.call('ZRANK', WAITING, user) + 1}
end

local function take_back(user, number)
  local n = txt(number)
  allow_oom(ITEM)
  redis.call('ZADD', WAITING, n, user)
  redis.call('RPUSH', DEPARTED, '+' .. n .. ':' .. n)
  redis.call('HINCRBY', ITEM, 'joined', 1)
  redis.call('SADD', ACTIVE, item.id)
  mark(number)
  if item.recoveringUntil == 0 then
    item.recoveringUntil = now + hold
    redis.call('HSET', ITEM, 'recoveringUntil', txt(item.recoveringUntil))
  end
end

-- A genuine number that is nowhere and whose end nobody remembers.
local function unknown(user, number)
  if number > item.tail then
    if not has_evidence(item, now) then return {'r'} end
    lift(item, number, now, hold)
  end
  -- So long ago that how it ended is forgotten.
  if not may_be_lost(item, number) then return {'x', 'E'} end
  if not takes_back(item, now) or is_taken(number) then return {'r'} end
  local waits_at = tonumber(redis.call('ZSCORE', WAITING, user) or nil)
  if holds(user) or (waits_at and waits_at < number) then return {'x', 'R'} end
  if waits_at then
    depart(user, waits_at)
    close(user, waits_at, 'R', now)
  end
  take_back(user, number)
  return waits(user)
end

local function standing(user, number)
  local inside, at, expires = parse_entry(redis.call('HGET', ENTERED, user))
  if inside == number then
    if expires > now then return {'e', at, expires} end
    return {'x', 'E'}
  end
  if item.removed ~= '0' then return {'n'} end
  if number < item.validFrom then return {'r'} end
  local missed, deadline = parse_missed(redis.call('HGET', MISSED, user))
  if missed == number then
    if is_missed_over(deadline, now) then return {'x', 'A'} end
    come_back(user, number)
  end
  if tonumber(redis.call('ZSCORE', RETURNING, user) or nil) == number then
    return {'w', redis.call('ZRANK', RETURNING, user) + 1}
  end
  if tonumber(redis.call('ZSCORE', WAITING, user) or nil) == number then return waits(user) end
  local reason = ended(number)
  if reason then return {'x', reason} end
  return unknown(user, number)
end

local answers = {}
for i = 5, #ARGV, 2 do
  answers[#answers + 1] = item.id and standing(ARGV[i], tonumber(ARGV[i + 1])) or {'f'}
end
write_down(now, item.id)
return answers
