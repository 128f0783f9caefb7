-- Asks the addresses in a file in turn, from the one with this index on.
local requests, at = {}, 0

function init(args)
  for address in io.lines(args[1]) do requests[#requests + 1] = wrk.format("GET", address) end
  at = tonumber(args[2])
end

function request()
  at = at % #requests + 1
  return requests[at]
end
