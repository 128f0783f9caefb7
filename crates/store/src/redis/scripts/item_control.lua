-- Return the settings of an item and where the counters of its lines stand.
-- KEYS: line, then all lanes
-- ARGV: none
-- Reply: {HGETALL item, lines.. (lane, validFrom, tail, lowest waiting number or '')}
-- Atomic: changes nothing; all parts are of one moment.
local lines = {}
for lane = 0, LANE_COUNT - 1 do
  select_lane(lane)
  local valid_from, tail = unpack(redis.call('HMGET', LINE, 'validFrom', 'tail'))
  if tail then
    local first = first_waiting()
    for _, word in ipairs({format_number(lane), valid_from or '0', tail, first and format_number(first) or ''}) do
      lines[#lines + 1] = word
    end
  end
end
return {redis.call('HGETALL', ITEM), lines}
