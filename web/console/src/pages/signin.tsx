import { useState } from "preact/hooks";
import { Api, Refusal } from "../api.js";
import { operatorBefore } from "../session.js";
import { say } from "../words.js";

export function SignIn({ signedIn, denied }: { signedIn: (api: Api) => void; denied: boolean }) {
  const [problem, setProblem] = useState(denied ? say("wrongToken") : "");
  const submit = async (form: HTMLFormElement) => {
    const given = new FormData(form);
    const api = new Api(String(given.get("token")).trim(), String(given.get("operator")).trim());
    try {
      await api.get("/overview?limit=0");
      signedIn(api);
    } catch (error) {
      setProblem(error instanceof Refusal && error.status === 401 ? say("wrongToken") : say("lost"));
    }
  };
  return (
    <main class="signin">
      <h1>
        daegi <span>{say("console")}</span>
      </h1>
      <p>{say("signInText")}</p>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void submit(event.currentTarget);
        }}
      >
        <label for="token">{say("token")}</label>
        <input id="token" name="token" type="password" required autocomplete="current-password" aria-describedby="problem" />
        <p id="problem" role="alert" class="grave">
          {problem}
        </p>
        <label for="operator">{say("operator")}</label>
        <input id="operator" name="operator" maxLength={64} autocomplete="name" value={operatorBefore()} aria-describedby="operator-hint" />
        <small id="operator-hint">{say("operatorHint")}</small>
        <button type="submit" class="ready">
          {say("signIn")}
        </button>
      </form>
    </main>
  );
}
