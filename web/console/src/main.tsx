// Puts the console together.

import { render } from "preact";
import { useLayoutEffect, useState } from "preact/hooks";
import type { Api } from "./api.js";
import { Audit } from "./pages/audit.js";
import { Line } from "./pages/line.js";
import { Lines } from "./pages/lines.js";
import { SignIn } from "./pages/signin.js";
import { forget, remember, restore } from "./session.js";
import { language, say } from "./words.js";

function App() {
  const [api, setApi] = useState<Api | null>(restore);
  const [denied, setDenied] = useState(false);
  if (!api) {
    const signedIn = (api: Api) => {
      remember(api);
      setDenied(false);
      setApi(api);
    };
    return <SignIn signedIn={signedIn} denied={denied} />;
  }
  const signOut = (isDenied: boolean) => {
    forget();
    setDenied(isDenied);
    setApi(null);
  };
  return <SignedIn api={api} signOut={signOut} />;
}

function SignedIn({ api, signOut }: { api: Api; signOut: (denied: boolean) => void }) {
  const place = usePlace();
  const watch = { api, denied: () => signOut(true) };
  const line = /^#\/line\/(.+)$/.exec(place)?.[1];
  const here = (is: boolean) => (is ? ({ "aria-current": "page" } as const) : {});
  return (
    <>
      <header class="top">
        <a class="brand" href="#/">
          daegi <span>{say("console")}</span>
        </a>
        <nav>
          <a href="#/" {...here(!line && place !== "#/audit")}>
            {say("lines")}
          </a>
          <a href="#/audit" {...here(place === "#/audit")}>
            {say("audit")}
          </a>
        </nav>
        {api.operator && <span class="operator">{api.operator}</span>}
        <button type="button" onClick={() => signOut(false)}>
          {say("signOut")}
        </button>
      </header>
      {line ? <Line key={line} watch={watch} id={decodeURIComponent(line)} /> : place === "#/audit" ? <Audit watch={watch} /> : <Lines watch={watch} />}
    </>
  );
}

/** Where the address says we are. */
function usePlace(): string {
  const [place, setPlace] = useState(location.hash);
  // An effect that waits for the next frame would miss whoever goes elsewhere before it.
  useLayoutEffect(() => {
    const changed = () => {
      setPlace(location.hash);
      window.scrollTo(0, 0);
    };
    window.addEventListener("hashchange", changed);
    return () => window.removeEventListener("hashchange", changed);
  }, []);
  return place;
}

document.documentElement.lang = language;
document.title = `daegi · ${say("console")}`;
const app = document.createElement("div");
app.id = "app";
document.body.append(app);
render(<App />, app);
