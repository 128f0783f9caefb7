-- The restart of lines.

-- End the waiting, returning and missed tickets without events. Entries stay. Numbers issued before are below
-- validFrom afterwards.
local function restart_line()
  local line = add_line_fields({}, {'tail', 'dropped', 'cohortSize'})
  -- No ticket was issued in the lane.
  if not line.tail then return end
  local ended = redis.call('ZCARD', WAITING) + redis.call('ZCARD', RETURNING) + redis.call('HLEN', MISSED)
  allow_oom(ITEM)
  redis.call('HINCRBY', LINE, 'ended', ended)
  redis.call('HSET', LINE,
    'dropped', format_number(tonumber(line.dropped) + redis.call('LLEN', DEPARTED)),
    'validFrom', format_number(tonumber(line.tail) + 1))
  redis.call('HSET', ITEM, 'recoveringUntil', '0', 'behindUntil', '0')
  if (line.cohortSize or '') ~= '' then redis.call('HSET', LINE, 'cohortServed', line.cohortSize) end
  redis.call('UNLINK', WAITING, RETURNING, MISSED, MISSED_UNTIL, DEPARTED, SLICE_STARTS)
end

-- End the lines of all lanes, whose keys the script has got.
local function restart_lines()
  for lane = 0, LANE_COUNT - 1 do
    select_lane(lane)
    restart_line()
  end
end
