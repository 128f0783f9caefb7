-- What became of tickets. Who missed their turn and asks in time comes back, ahead of the line.
-- KEYS[17]: the current slice of liveness.
-- ARGV: 1 now · 2.. user, number, …
-- Reply: {tag, a, b} per ticket: 'w' waiting, position · 'e' entered, at, expires ·
--        'x' ended, reason · 'r' from before a restart · 'u' not given yet · 'n' no such item
local now = tonumber(ARGV[1])
local item = item_fields('removed', 'validFrom', 'tail')

local function standing(user, number)
  local inside, at, expires = parse_entry(redis.call('HGET', ENTERED, user))
  if inside == number then
    if expires > now then return {'e', at, expires} end
    return {'x', 'E'}
  end
  if item.removed ~= '0' then return {'n'} end
  if number < tonumber(item.validFrom) then return {'r'} end
  local missed, deadline = parse_missed(redis.call('HGET', MISSED, user))
  if missed == number then
    if deadline <= now then return {'x', 'A'} end
    come_back(user, number)
  end
  if tonumber(redis.call('ZSCORE', RETURNING, user) or nil) == number then
    return {'w', redis.call('ZRANK', RETURNING, user) + 1}
  end
  if tonumber(redis.call('ZSCORE', WAITING, user) or nil) == number then
    return {'w', redis.call('ZCARD', RETURNING) + redis.call('ZRANK', WAITING, user) + 1}
  end
  local n = txt(number)
  local reasons = {'E', 'C', 'L', 'A', 'R'}
  local ends = redis.call('ZMSCORE', CLOSED, n .. ':E', n .. ':C', n .. ':L', n .. ':A', n .. ':R')
  for i, reason in ipairs(reasons) do
    if ends[i] then return {'x', reason} end
  end
  if number > tonumber(item.tail) then return {'u'} end
  -- So long ago that how it ended is forgotten.
  return {'x', 'E'}
end

local answers = {}
for i = 2, #ARGV, 2 do answers[#answers + 1] = standing(ARGV[i], tonumber(ARGV[i + 1])) end
return answers
