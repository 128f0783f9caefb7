-- Lines that the leader must look at although they are empty.

-- Return whether the line opens or closes later. Takes an item as phase() does.
local function has_opening_ahead(item)
  if (item.opening or '') == '' or item.closedAt ~= '' then return false end
  return item.openedAt == '' or item.closesAt ~= ''
end
