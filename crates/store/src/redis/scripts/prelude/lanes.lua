-- Several lanes in one script. The names of KEYS and the collected events are those of the selected lane.

-- What the script has collected for the lanes that are not selected.
local collected = {}

-- Select another lane, whose keys the script has got.
local function use_lane(lane)
  if lane == LANE then return end
  collected[LANE] = {
    ended_events = ended_events, ended_index = ended_index, ended_by_reason = ended_by_reason,
    ended_in_call = ended_in_call, new_entries = new_entries, new_entries_expire_at = new_entries_expire_at,
    cached_base = cached_base, unserved = unserved, short_retention_start = short_retention_start,
  }
  LANE = lane
  select_lane(lane)
  local other = collected[lane] or {}
  ended_events, ended_index = other.ended_events or {}, other.ended_index or {}
  ended_by_reason, ended_in_call = other.ended_by_reason or {}, other.ended_in_call or {}
  new_entries, new_entries_expire_at = other.new_entries or {}, other.new_entries_expire_at
  cached_base, unserved, short_retention_start = other.cached_base, other.unserved, other.short_retention_start
end

-- Call `step` with each lane of the item selected, and select the present one again. Without lanes, call it
-- once.
local function for_each_lane(step)
  if LANE_COUNT == 0 then
    step()
    return
  end
  local selected = LANE
  for lane = 0, LANE_COUNT - 1 do
    use_lane(lane)
    step()
  end
  use_lane(selected)
end

-- Return how many slots are taken in all lanes: entries, those of this call included, and entries given back
-- whose pass is still valid.
local function slots_taken(now)
  local taken = 0
  for_each_lane(function()
    taken = taken + entry_count() + redis.call('ZCOUNT', RESERVED_SLOTS, '(' .. format_number(now), '+inf')
  end)
  return taken
end

-- Write the events of all lanes, the ends before the admissions.
local function commit_lanes(now, id, epoch)
  for_each_lane(function() write_ends(now, id, epoch or '') end)
  for_each_lane(function() write_admissions(now, id, epoch or '') end)
end

-- Return false if KEYS name all lanes of the item, otherwise how many lanes it has: those of the policy, and those
-- that have a line. Takes both fields of the item.
local function lacks_lanes(lanes, lane_count)
  local _, in_policy = string.gsub(lanes or '', ':', ':')
  local in_use = math.max(in_policy, tonumber(lane_count or '0'))
  return LANE_COUNT ~= (in_use > 0 and in_use + 1 or 0) and in_use
end

-- Return how many lanes the text of a policy has, and their shares (a weight, or 'first') from index 0 on, that
-- of the standard lane included.
local function lane_shares(text)
  local shares, count, sum = {}, 0, 0
  for share in string.gmatch(text or '', ':(%w+)') do
    count = count + 1
    shares[count] = tonumber(share) or share
    if shares[count] ~= 'first' then sum = sum + shares[count] end
  end
  shares[0] = math.max(100 - sum, 1)
  return count, shares
end
