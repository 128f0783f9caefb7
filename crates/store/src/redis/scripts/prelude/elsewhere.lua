-- Tickets of a user in other lanes.

-- Return whether a user holds a live ticket in another lane than the selected one.
local function is_live_elsewhere(user)
  local selected, found = LANE, false
  for_each_lane(function()
    found = found or (LANE ~= selected and (has_live_ticket(user) or redis.call('ZSCORE', WAITING, user) ~= false))
  end)
  return found
end
