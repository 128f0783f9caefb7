-- Sends cookies to one path in turn.
-- Arguments: file with the path and one cookie per line, index of the first request.

local path
local requests = {}
local next_request = 0

function init(args)
  for line in io.lines(args[1]) do
    if path then
      requests[#requests + 1] = wrk.format("GET", path, {cookie = line, accept = "text/html"})
    else
      path = line
    end
  end
  next_request = tonumber(args[2])
end

function request()
  next_request = next_request + 1
  return requests[(next_request - 1) % #requests + 1]
end
