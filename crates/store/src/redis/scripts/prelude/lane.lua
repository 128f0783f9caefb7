-- The line of a lane that no ticket was issued in. The field laneCount of the item is the highest lane that has a
-- line; it grows only, because entries may outlive the lane in the policy.

-- Begin the line of the lane if it has none and the policy has the lane. Return whether there is a line.
-- `serves_existing` allows that at maxmemory. If the store lost data, the lane may have had a line: as in the standard
-- lane, numbers up to the base are reclaimed.
local function begin_lane(now, serves_existing)
  if LINE == ITEM or redis.call('EXISTS', LINE) == 1 then return true end
  local _, lanes = string.gsub(redis.call('HGET', ITEM, 'lanes') or '', ':', ':')
  if LANE > lanes then return false end
  if serves_existing then allow_oom(ITEM) end
  local base = format_number(math.min(now * NUMBERS_PER_MS, MAX_NUMBER))
  local run, reclaim_until = unpack(redis.call('HMGET', ITEM, 'run', 'takeBackUntil'))
  if run ~= run_id() then reclaim_until = format_number(now + RECLAIM_WINDOW_MS) end
  redis.call('HSET', LINE, 'base', base, 'tail', base, 'validFrom', '0', 'dropped', '0', 'lostFrom', '0',
    'takeBackUntil', reclaim_until or '0', 'lostRangeUsedAt', '0', 'clockBase', '0', 'joined', '0', 'admitted', '0',
    'ended', '0', 'run', run or '')
  if LANE > tonumber(redis.call('HGET', ITEM, 'laneCount') or '0') then redis.call('HSET', ITEM, 'laneCount', LANE) end
  return true
end
