-- Replace an item's policy if the item has the expected revision. Another opening needs an empty line, and another
-- name of a lane needs a lane without tickets.
-- KEYS: line, then all lanes
-- ARGV: revision · now (ms) · replaces_opening ('1' or '') · fields.. (field, value, …)
-- Reply: {'changed', HGETALL item}, {'conflict'}, {'notempty'}, {'lanenotempty', lane} or {'notfound'}
-- Atomic: no concurrent change of the item is overwritten.
if not item_exists() then return {'notfound'} end
if redis.call('HGET', ITEM, 'revision') ~= revision then return {'conflict'} end

-- Return the names of the lanes in the text of a policy.
local function lane_names(text)
  local names = {}
  for name in string.gmatch(text or '', '([^ :]+):') do names[#names + 1] = name end
  return names
end

local old_names, new_names = lane_names(redis.call('HGET', ITEM, 'lanes')), {}
for i = FIELDS, #ARGV, 2 do
  if ARGV[i] == 'lanes' then new_names = lane_names(ARGV[i + 1]) end
end
for lane = 0, LANE_COUNT - 1 do
  select_lane(lane)
  local in_line = redis.call('ZCARD', WAITING) + redis.call('ZCARD', RETURNING) + redis.call('HLEN', MISSED)
  if replaces_opening == '1' and in_line > 0 then return {'notempty'} end
end
for lane, name in ipairs(old_names) do
  select_lane(lane)
  if name ~= new_names[lane] and redis.call('EXISTS', WAITING, RETURNING, MISSED, ENTERED) > 0 then
    return {'lanenotempty', lane}
  end
end
allow_oom(ITEM)
redis.call('HSET', ITEM, unpack(ARGV, FIELDS))
local item = item_fields('id', 'opening', 'closesAt', 'openedAt', 'closedAt')
-- A line that has closed opens again with another closing time.
if item.closedAt ~= item.closesAt and (item.closedAt or '') ~= '' then
  redis.call('HSET', ITEM, 'closedAt', '')
  item.closedAt = ''
end
bump_control(ITEM, item.id, tonumber(now))
if has_opening_ahead(item) then redis.call('SADD', ACTIVE, item.id) end
return {'changed', bump_revision(now)}
