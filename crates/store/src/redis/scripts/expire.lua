-- End entries and missed turns whose time has passed, observe how entries come and go, delete what is past its retention, and deactivate an
-- empty line.
-- KEYS: line, then all lanes for the standard lane of an item that has any
-- ARGV: epoch · now (int, ms) · max_users (int, per call) · id · recovery_hold (int, ms)
-- Reply: {expired, abandoned, 0|1 more, 0|1 active, 0|1 no number at or below the base waits, how many lanes the
--        item has}. An item whose lanes are not all in KEYS stays active.
-- Atomic: a ticket is removed and its event written together; a stale epoch changes nothing.
if is_stale(epoch) then return STALE end
local item = item_fields('id', 'removed', 'lanes', 'laneCount', 'passTtlSeconds')
if not item.id then
  redis.call('SREM', ACTIVE, id)
  return {0, 0, 0, 0, 0, 0}
end
add_line_fields(item, {'tail', 'run', 'cohortFirst', 'cohortSize', 'cohortServed', 'drawSeed'})
local _, in_policy = string.gsub(item.lanes or '', ':', ':')
local lanes = math.max(in_policy, tonumber(item.laneCount or '0'))
-- No ticket was issued in the lane.
if not item.tail then return {0, 0, 0, 1, 1, lanes} end
local recovered = item.removed == '0' and detect_data_loss(item.run, now, recovery_hold)
if recovered then item.tail = recovered.tail end

-- Remove the entry groups whose time has passed, as many as hold at most max_users, and at least one. Return
-- their users, and whether groups are left.
local function take_due_groups()
  local users, groups = {}, {}
  while true do
    local group = redis.call('ZRANGEBYSCORE', ENTERED_UNTIL, '-inf', now, 'LIMIT', #groups, 1)[1]
    local members = {}
    for user in string.gmatch(group or '', '%S+') do members[#members + 1] = user end
    if not group or (#groups > 0 and #users + #members > max_users) then
      if #groups > 0 then redis.call('ZREM', ENTERED_UNTIL, unpack(groups)) end
      return users, group ~= nil
    end
    groups[#groups + 1] = group
    for _, user in ipairs(members) do users[#users + 1] = user end
  end
end

-- End the expired entries of these users, once each: a user may have left, been admitted again with a later
-- expiry, and be in two groups. Return how many.
local function expire_entries(users)
  if #users == 0 then return 0 end
  local expired, is_expired = {}, {}
  for i, entry in ipairs(redis.call('HMGET', ENTERED, unpack(users))) do
    local user, number, _, expires_at = users[i], parse_entry(entry)
    if number and expires_at <= now and not is_expired[user] then
      end_ticket(user, number, 'E', now)
      expired[#expired + 1], is_expired[user] = user, true
    end
  end
  if #expired > 0 then redis.call('HDEL', ENTERED, unpack(expired)) end
  return #expired
end

-- End at most `limit` missed turns whose time has passed. Return how many.
local function abandon_missed(limit)
  if not has_missed_turn_ended(0, now) then return 0 end
  local due = redis.call('ZRANGEBYSCORE', MISSED_UNTIL, '-inf', now, 'LIMIT', 0, limit)
  if #due == 0 then return 0 end
  local missed = redis.call('HMGET', MISSED, unpack(due))
  for i, user in ipairs(due) do end_ticket(user, parse_missed(missed[i]), 'A', now) end
  redis.call('HDEL', MISSED, unpack(due))
  redis.call('ZREM', MISSED_UNTIL, unpack(due))
  return #due
end

-- Delete at most max_users members of a sorted set with scores up to `limit`. Return how many.
local function delete_up_to(key, limit)
  local members = redis.call('ZRANGEBYSCORE', key, '-inf', limit, 'LIMIT', 0, max_users)
  if #members > 0 then redis.call('ZREM', key, unpack(members)) end
  return #members
end

local users, groups_left = take_due_groups()
local expired = expire_entries(users)
local abandoned = #users < max_users and abandon_missed(max_users - #users) or 0
commit(now, id, epoch)
observe_entries(tonumber(item.passTtlSeconds or '0') * 1000, now)

local deleted_ends = delete_up_to(ENDED, now - ENDED_RETENTION_MS)
delete_up_to(RESERVED_SLOTS, now)

-- Drop the changes below the front: no position depends on them any more. While ranks of a cohort are not
-- served, any of its numbers may still matter.
local front, dropped = first_rank(item, 0), 0
if not has_unserved_ranks() then
  for _, change in ipairs(redis.call('LRANGE', DEPARTED, 0, max_users - 1)) do
    if tonumber(string.match(change, '%d+$')) >= front then break end
    dropped = dropped + 1
  end
end
if dropped > 0 then
  redis.call('LTRIM', DEPARTED, dropped, -1)
  redis.call('HINCRBY', LINE, 'dropped', dropped)
end

-- Whether no number at or below the base waits.
local is_front_above_base = front > line_base()

-- Return whether a lane has tickets, or changes that the leader must look at. Lanes that are not in KEYS may have.
local function has_tickets()
  if redis.call('EXISTS', WAITING, RETURNING, MISSED, ENTERED, DEPARTED) > 0 or LANE > 0 then return true end
  if lanes == 0 then return false end
  for lane = 1, LANE_COUNT - 1 do
    select_lane(lane)
    if redis.call('EXISTS', WAITING, RETURNING, MISSED, ENTERED, DEPARTED) > 0 then return true end
  end
  return LANE_COUNT <= lanes
end

local entry_groups = ENTERED_UNTIL
local active = has_tickets() or redis.call('HGET', ITEM, 'through') ~= '0'
  or (item.removed == '0' and has_opening_ahead(item_fields('opening', 'closesAt', 'openedAt', 'closedAt')))
if not active then
  redis.call('SREM', ACTIVE, id)
  redis.call('UNLINK', entry_groups)
end
local more = groups_left or #users + abandoned == max_users or deleted_ends == max_users
return {expired, abandoned, more and 1 or 0, active and 1 or 0, is_front_above_base and 1 or 0, lanes}
