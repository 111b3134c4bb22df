import { failureShapes } from '../../kit/schemas.ts';

/** The failures that a route documents beside its success: those named, and those that may befall any request. */
export const failing = failureShapes({
  400: 'The request does not have the form this operation takes.',
  401: 'The API key is missing or unknown.',
  403: 'The label of this API key permits reading only.',
  404: 'Nothing of that id exists.',
  409: 'The state of the resource does not allow this.',
  412: 'The resource changed since the version named in If-Match.',
  413: 'The body is larger than a request may be.',
  415: 'The body does not have the media type this operation takes.',
  429: 'The rate limit is used up; Retry-After says when to come back.',
  500: 'The service failed; the log has the cause under the `request_id`.',
  503: 'The storage is out of reach, or too much is in hand; try again.',
});
