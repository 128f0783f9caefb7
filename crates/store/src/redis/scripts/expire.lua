-- Ends entries and missed turns whose time is up, forgets what is old, retires an empty line.
-- ARGV: 1 epoch · 2 now · 3 most people per call · 4 id · 5 how long a line waits for people it lost
-- Reply: {expired, abandoned, 0|1 more, 0|1 active, 0|1 no number at or below the base waits}
if is_stale(ARGV[1]) then return STALE end
local now, chunk, id = tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4]
local item = item_fields('id', 'tail', 'removed', 'run')
if not item.id then
  redis.call('SREM', ACTIVE, id)
  return {0, 0, 0, 0, 0}
end
if item.removed == '0' then item = notice_loss(item.run, now, tonumber(ARGV[5])) or item end

-- Takes the groups whose time is up, as many as hold no more than so many people, and at least one.
-- Returns those people and whether groups are left.
local function due_groups(most)
  local people, groups = {}, {}
  while true do
    local group = redis.call('ZRANGEBYSCORE', ENTERED_UNTIL, '-inf', now, 'LIMIT', #groups, 1)[1]
    local names = {}
    for user in string.gmatch(group or '', '%S+') do names[#names + 1] = user end
    if not group or (#groups > 0 and #people + #names > most) then
      if #groups > 0 then redis.call('ZREM', ENTERED_UNTIL, unpack(groups)) end
      return people, group ~= nil
    end
    groups[#groups + 1] = group
    for _, user in ipairs(names) do people[#people + 1] = user end
  end
end

-- Ends the entries of those of them who are inside, once each: they may have gone, been let in anew
-- for longer, and be in two groups.
local function end_entries(people)
  if #people == 0 then return 0 end
  local over, ended_now = {}, {}
  for i, entry in ipairs(redis.call('HMGET', ENTERED, unpack(people))) do
    local user, number, _, expires = people[i], parse_entry(entry)
    if number and expires <= now and not ended_now[user] then
      close(user, number, 'E', now)
      over[#over + 1], ended_now[user] = user, true
    end
  end
  if #over > 0 then redis.call('HDEL', ENTERED, unpack(over)) end
  return #over
end

local function end_missed(most)
  if not is_missed_over(0, now) then return 0 end
  local due = redis.call('ZRANGEBYSCORE', MISSED_UNTIL, '-inf', now, 'LIMIT', 0, most)
  if #due == 0 then return 0 end
  local missed = redis.call('HMGET', MISSED, unpack(due))
  for i, user in ipairs(due) do close(user, parse_missed(missed[i]), 'A', now) end
  redis.call('HDEL', MISSED, unpack(due))
  redis.call('ZREM', MISSED_UNTIL, unpack(due))
  return #due
end

local people, groups_left = due_groups(chunk)
local expired = end_entries(people)
local abandoned = #people < chunk and end_missed(chunk - #people) or 0
write_down(now, id, ARGV[1])

-- Whoever is let in together expires together, and is forgotten together an hour later.
local forgotten = redis.call('ZRANGEBYSCORE', CLOSED, '-inf', now - CLOSED_KEEP_MS, 'LIMIT', 0, chunk)
if #forgotten > 0 then redis.call('ZREM', CLOSED, unpack(forgotten)) end

local expired_slots = redis.call('ZRANGEBYSCORE', LEFTOVER, '-inf', now, 'LIMIT', 0, chunk)
if #expired_slots > 0 then redis.call('ZREM', LEFTOVER, unpack(expired_slots)) end

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
if not active then
  redis.call('SREM', ACTIVE, id)
  redis.call('UNLINK', ENTERED_UNTIL)
end
local more = groups_left or #people + abandoned == chunk or #forgotten == chunk
return {expired, abandoned, more and 1 or 0, active and 1 or 0, front > base() and 1 or 0}
