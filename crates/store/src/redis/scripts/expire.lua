-- Ends entries and missed turns whose time is up, forgets what is old, retires an empty line.
-- ARGV: 1 epoch · 2 now · 3 most people per call · 4 id · 5 how long a line waits for people it lost
-- Reply: {expired, abandoned, 0|1 more, 0|1 active}
if is_stale(ARGV[1]) then return STALE end
local now, chunk, id = tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4]
local item = item_fields('id', 'tail', 'removed', 'run')
if not item.id then
  redis.call('SREM', ACTIVE, id)
  return {0, 0, 0, 0}
end
if item.removed == '0' then item = notice_loss(item.run, now, tonumber(ARGV[5])) or item end

local function end_due(people, untils, parse, reason, limit)
  local due = redis.call('ZRANGEBYSCORE', untils, '-inf', now, 'LIMIT', 0, limit)
  if #due == 0 then return 0 end
  local held = redis.call('HMGET', people, unpack(due))
  for i, user in ipairs(due) do close(user, parse(held[i]), reason, now) end
  redis.call('HDEL', people, unpack(due))
  redis.call('ZREM', untils, unpack(due))
  return #due
end

local expired = end_due(ENTERED, ENTERED_UNTIL, parse_entry, 'E', chunk)
local abandoned = 0
if expired < chunk then
  abandoned = end_due(MISSED, MISSED_UNTIL, parse_missed, 'A', chunk - expired)
end
write_down(now, id, ARGV[1])

-- Whoever is let in together expires together, and is forgotten together an hour later.
local forgotten = redis.call('ZRANGEBYSCORE', CLOSED, '-inf', now - CLOSED_KEEP_MS, 'LIMIT', 0, chunk)
if #forgotten > 0 then redis.call('ZREM', CLOSED, unpack(forgotten)) end

-- Changes that the front has passed do not matter any more.
local front = first_waiting() or tonumber(item.tail) + 1
local passed = 0
for _, change in ipairs(redis.call('LRANGE', DEPARTED, 0, chunk - 1)) do
  if tonumber(string.match(change, '%d+$')) >= front then break end
  passed = passed + 1
end
if passed > 0 then
  redis.call('LTRIM', DEPARTED, passed, -1)
  redis.call('HINCRBY', ITEM, 'dropped', passed)
end

local active = redis.call('EXISTS', WAITING, RETURNING, MISSED, ENTERED, DEPARTED) > 0
  or redis.call('HGET', ITEM, 'through') ~= '0'
if not active then redis.call('SREM', ACTIVE, id) end
local more = expired + abandoned == chunk or #forgotten == chunk
return {expired, abandoned, more and 1 or 0, active and 1 or 0}
