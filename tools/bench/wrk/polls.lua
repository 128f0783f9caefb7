-- Polls the paths in the file args[1] in turn, beginning with index args[2].
local requests, at = {}, 0

function init(args)
  for path in io.lines(args[1]) do requests[#requests + 1] = wrk.format("GET", path) end
  at = tonumber(args[2])
end

function request()
  at = at % #requests + 1
  return requests[at]
end
